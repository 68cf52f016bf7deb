package object

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sections that do not fit the heap are the same elsewhere, take none of it, and leave no file.
func TestSectionsSpill(t *testing.T) {
	if !canMap {
		t.Skip("nothing is mapped here")
	}
	plain := func(c string) []byte { return []byte(strings.Repeat("section "+c+" of many bytes; ", 100000)) }
	m := layouts[0]
	one, two, three := m.compressed(elf.COMPRESS_ZLIB, 2500000, zlibOf(t, bytes.NewReader(plain("1")))), m.compressed(elf.COMPRESS_ZSTD, 2500000, zstdOf(t, bytes.NewReader(plain("2")))), m.compressed(elf.COMPRESS_ZLIB, 100, zlibOf(t, bytes.NewReader(plain("3")[:100])))
	one.Name, two.Name, three.Name = ".debug_info", ".debug_line", ".debug_str"
	m.sections = []imageSection{one, two, three}
	b := m.bytes(t)
	for _, tt := range []struct {
		over  int64
		least int64 // bytes of footprint
		most  int64
	}{
		{0, 100, 1 << 16}, {3000000, 2500000, 3 << 20}, {1 << 40, 5000000, 6 << 20},
	} {
		dir := filepath.Join(t.TempDir(), "made")
		f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{SpillDir: dir, SpillOver: tt.over})
		if err != nil {
			t.Fatal(err)
		}
		if !f.Spills() {
			t.Error("Spills() = false")
		}
		f.Inflate(".debug_info", ".debug_line", ".debug_str")
		for name, want := range map[string][]byte{".debug_info": plain("1"), ".debug_line": plain("2"), ".debug_str": plain("3")[:100]} {
			if got, err := f.Data(name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("over %d: Data(%s): %d bytes, %v", tt.over, name, len(got), err)
			}
		}
		if n := f.Footprint(); n < tt.least || n > tt.most {
			t.Errorf("over %d: Footprint() = %d, want %d to %d", tt.over, n, tt.least, tt.most)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("over %d: %v are left", tt.over, left)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	// Where there is no room, the section cannot be had.
	f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{SpillDir: "/dev/null/x"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Data(".debug_info"); err == nil || !strings.Contains(err.Error(), "inflate in a file") {
		t.Errorf("Data: %d bytes, %v", len(got), err)
	}
	if got, err := f.Data(".debug_str"); err != nil || len(got) != 100 {
		t.Errorf("Data of a small section: %d bytes, %v", len(got), err)
	}
}
