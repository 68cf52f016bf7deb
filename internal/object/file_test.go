package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// open opens a file as users of this package do, and closes it at the end of the test.
func open(t testing.TB, path string) *File {
	t.Helper()
	osFile, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { osFile.Close() })
	info, err := osFile.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(osFile, info.Size(), osFile)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// machineFiles returns ELF files of this machine. Without any, it skips the test.
func machineFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"/usr/bin/*", "/usr/lib/*/lib*.so*"} {
		matches, _ := filepath.Glob(pattern)
		n := 0
		for _, path := range matches {
			if n == 40 {
				break
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() < 32<<20 {
				if f, err := elf.Open(path); err == nil {
					f.Close()
					files = append(files, path)
					n++
				}
			}
		}
	}
	if len(files) == 0 {
		t.Skip("no ELF files in /usr/bin and /usr/lib")
	}
	return files
}

func TestSectionsAndSegmentsAreThoseOfDebugELF(t *testing.T) {
	for _, path := range machineFiles(t) {
		want, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		f := open(t, path)
		if f.Class != want.Class || f.Order != want.ByteOrder || f.Machine != want.Machine || f.Type != want.Type {
			t.Errorf("%s: %v %v %v %v, want %v %v %v %v", path, f.Class, f.Order, f.Machine, f.Type, want.Class, want.ByteOrder, want.Machine, want.Type)
		}
		if f.Damage() != nil {
			t.Errorf("%s: Damage() = %v", path, f.Damage())
		}
		if len(f.Sections()) != len(want.Sections) {
			t.Errorf("%s: %d sections, want %d", path, len(f.Sections()), len(want.Sections))
			continue
		}
		for i, got := range f.Sections() {
			w := want.Sections[i].SectionHeader
			if got != (Section{w.Name, w.Type, w.Flags, w.Addr, w.Offset, w.FileSize, w.Link, w.Info, w.Addralign}) {
				t.Errorf("%s: section %d: %+v, want %+v", path, i, got, w)
			}
			if w.Name == "" || want.Section(w.Name) != want.Sections[i] {
				continue
			}
			got, err := f.Data(w.Name)
			if err != nil {
				t.Errorf("%s: Data(%s): %v", path, w.Name, err)
			}
			var data []byte
			if w.Type != elf.SHT_NOBITS {
				data, err = want.Sections[i].Data()
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, data) {
				t.Errorf("%s: Data(%s): %d bytes, want %d others", path, w.Name, len(got), len(data))
			}
		}
		if len(f.Segments()) != len(want.Progs) {
			t.Errorf("%s: %d segments, want %d", path, len(f.Segments()), len(want.Progs))
			continue
		}
		for i, got := range f.Segments() {
			w := want.Progs[i].ProgHeader
			if got != (Segment{w.Type, w.Flags, w.Off, w.Vaddr, w.Filesz, w.Memsz, w.Align}) {
				t.Errorf("%s: segment %d: %+v, want %+v", path, i, got, w)
			}
		}
	}
}

func TestPlainSectionsAliasTheMapping(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("nothing is mapped here")
	}
	f := open(t, machineFiles(t)[0])
	before := f.Footprint()
	s, ok := f.Section(".text")
	if !ok {
		t.Fatal("no .text")
	}
	data, err := f.Data(".text")
	if err != nil || len(data) == 0 {
		t.Fatalf("Data(.text): %d bytes, %v", len(data), err)
	}
	if &data[0] != &f.mapped[s.Offset] {
		t.Error("Data(.text) is a copy, want a slice of the mapping")
	}
	if after := f.Footprint(); after != before {
		t.Errorf("Footprint() = %d after Data, want %d as before", after, before)
	}
}

// CutOff must report a file that ends before its section headers or its sections end. It must not
// report a file without section headers, or with sections without bytes.
func TestFilesThatAreCutOff(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "stripped.elf"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	off, n := le.Uint64(data[40:]), uint64(le.Uint16(data[60:]))*shdrSize64
	table := data[off : off+n]
	moved := slices.Concat(data[:ehdrSize64], table, data[ehdrSize64:off]) // as Go's linker writes it
	le.PutUint64(moved[40:], ehdrSize64)
	le.PutUint64(moved[32:], le.Uint64(moved[32:])+n)
	for i := uint64(0); i < n; i += shdrSize64 {
		if header := moved[ehdrSize64+i:]; le.Uint32(header[4:]) != 0 {
			le.PutUint64(header[24:], le.Uint64(header[24:])+n)
		}
	}
	bare := slices.Clone(data) // without section headers
	le.PutUint64(bare[40:], 0)
	le.PutUint16(bare[60:], 0)
	for _, test := range []struct {
		name string
		data []byte
		cut  bool
	}{
		{"whole", data, false},
		{"with more bytes", append(slices.Clone(data), "signature"...), false},
		{"without its last byte", data[:len(data)-1], true},
		{"without its section headers", data[:off], true},
		{"half", data[:len(data)/2], true},
		{"headers first", moved, false},
		{"headers first, without the end", moved[:len(moved)-200], true},
		{"no section headers", bare, false},
		{"no section headers, half", bare[:len(bare)/2], false},
	} {
		f, err := Open(bytes.NewReader(test.data), int64(len(test.data)), nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if whole, cut := f.CutOff(); cut != test.cut || cut && whole > uint64(len(data)) && whole > uint64(len(moved)) {
			t.Errorf("%s: got %d bytes, cut off: %v; want %v", test.name, whole, cut, test.cut)
		}
		f.Close()
	}
}
