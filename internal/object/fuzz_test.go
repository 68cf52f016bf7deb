package object

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// seeds returns the small committed files by name.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.elf")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	files := make(map[string][]byte)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = b
	}
	return files
}

func TestSeedsAreReadWhole(t *testing.T) {
	tests := []struct {
		file    string
		idSize  int
		symbols bool // .symtab; .dynsym has only the global symbols
		info    bool
	}{
		{"aarch64.elf", 16, true, true},
		{"big.elf", 0, true, true},
		{"debug.elf", 20, true, true},
		{"stripped.elf", 20, false, false},
		{"thumb32.elf", 8, true, true},
		{"whole.elf", 20, true, true},
		{"zdebug.elf", 20, true, true},
		{"zlib.elf", 20, true, true},
		{"zstd.elf", 20, true, true},
	}
	files := seeds(t)
	if len(files) != len(tests) {
		t.Errorf("%d files, want the %d of the table", len(files), len(tests))
	}
	plain, err := openBytes(files["whole.elf"])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			b := files[tt.file]
			id, _ := BuildID(bytes.NewReader(b), int64(len(b)))
			if len(id) != tt.idSize {
				t.Errorf("BuildID = %x, want %d bytes", id, tt.idSize)
			}
			f, err := openBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Data(".debug_info")
			if err != nil || (len(info) > 0) != tt.info {
				t.Errorf("Data(.debug_info): %d bytes, %v", len(info), err)
			}
			if want, _ := plain.Data(".debug_info"); strings.HasPrefix(tt.file, "z") && !bytes.Equal(info, want) {
				t.Errorf("Data(.debug_info): %x, want that of whole.elf, %x", info, want)
			}
			s, ok := f.Section(".text")
			if !ok || !f.ExecCovers(s.Addr) {
				t.Errorf("no code in .text: %+v", s)
			}
			names := make(map[string]bool)
			for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
				if sym, ok := f.Symbol(addr); ok {
					names[string(sym.Name)] = true
					if source := string(f.SourceFile(sym)); sym.Local != (source == "small.c") {
						t.Errorf("SourceFile(%s) = %q", sym.Name, source)
					}
				}
			}
			if !names["run"] || names["twice"] != tt.symbols {
				t.Errorf("symbols of .text: %v, want run, and twice %v", names, tt.symbols)
			}
		})
	}
}

// In a file made by objcopy --only-keep-debug, code sections have no bytes but keep their flags.
// Its symbols must be found.
func TestOnlyKeepDebugFilesKnowTheirSymbols(t *testing.T) {
	files := seeds(t)
	whole, err := openBytes(files["whole.elf"])
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	debug, err := openBytes(files["debug.elf"])
	if err != nil {
		t.Fatal(err)
	}
	defer debug.Close()
	if data, err := debug.Data(".text"); data != nil || err != nil {
		t.Errorf("Data(.text) = %d bytes, %v; want none", len(data), err)
	}
	s, _ := whole.Section(".text")
	for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
		want, wantOK := whole.Symbol(addr)
		got, ok := debug.Symbol(addr)
		if ok != wantOK || string(got.Name) != string(want.Name) || got.Addr != want.Addr || got.Size != want.Size {
			t.Errorf("Symbol(%#x) = %s, %v; want %s, %v", addr, got.Name, ok, want.Name, wantOK)
		}
	}
}

func TestSeedsHaveTheBuildIDOfReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf")
	}
	line := regexp.MustCompile(`Build ID: ([0-9a-f]+)`)
	for name, b := range seeds(t) {
		out, err := exec.Command("readelf", "--notes", "--wide", filepath.Join("testdata", name)).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if m := line.FindSubmatch(out); m != nil {
			want = string(m[1])
		}
		id, _ := BuildID(bytes.NewReader(b), int64(len(b)))
		if got := hex.EncodeToString(id); got != want {
			t.Errorf("%s: BuildID = %s, want %s", name, got, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	for _, m := range layouts {
		m.sections = []imageSection{
			m.compressed(1, 1000, zlibOf(f, zeros(1000))), m.compressed(2, 1000, zstdOf(f, zeros(1000))), m.zdebug(1000, zlibOf(f, zeros(1000))),
		}
		m.sections = append(m.sections, m.symtab(f, 2, 5, []imageSymbol{{"f", 0, 4, 2, 1, 1}, {"$x", 2, 0, 0, 0, 1}})...)
		f.Add(m.bytes(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		watch(t)
		id, err := BuildID(bytes.NewReader(b), int64(len(b)))
		if err == nil && (len(id) == 0 || len(id) > maxID) {
			t.Errorf("BuildID = %x", id)
		}
		o, err := openBytes(b)
		if err != nil {
			return
		}
		visit(t, o)
		if len(b) < 1<<16 {
			checkSmall(t, b)
		}
	})
}
