package gopcln

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/gosym"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// layouts returns tables of all versions, in both byte orders and word sizes.
func layouts() []image {
	var all []image
	for _, v := range []version{go12, go116, go118, go120} {
		all = append(all, image{v, false, false, false}, image{v, true, true, false}, image{v, false, false, true})
	}
	return all
}

// visit looks up addresses in the file b.
func visit(b []byte) {
	f, err := object.Open(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		return
	}
	defer f.Close()
	table, err := New(f)
	if err != nil {
		return
	}
	lookups(table)
	for i := range min(table.functions, 100) {
		if entry, ok := table.entry(i); ok {
			table.Lookup(nil, entry)
		}
	}
	table.Footprint()
}

func TestEveryByteMayBeAnything(t *testing.T) {
	for _, m := range layouts() {
		whole := m.bytes()
		for i := range whole {
			if i >= 0x100 && i < dataOff {
				continue // bytes of code, which are not read
			}
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				b := bytes.Clone(whole)
				b[i] = v
				visit(b)
			}
			if i%4 == 0 && i+8 <= len(whole) {
				b := bytes.Clone(whole)
				copy(b[i:], "\xff\xff\xff\xff\xff\xff\xff\xff")
				visit(b)
			}
		}
	}
}

func TestATruncatedTableIsReadOrNot(t *testing.T) {
	for _, m := range layouts() {
		whole := m.bytes()
		for n := dataOff; n < len(whole); n++ {
			visit(whole[:n:n])
		}
	}
}

func TestFilesWithoutATable(t *testing.T) {
	empty := image{version: go120}.bytes()
	clear(empty[dataOff:])
	magics := bytes.Clone(empty)
	for i := dataOff; i+8 <= len(magics); i += 8 {
		copy(magics[i:], "\xf1\xff\xff\xff\x00\x00\x01\x08")
	}
	for name, b := range map[string][]byte{"zeros": empty, "magic numbers alone": magics} {
		if table, err := New(openBytes(t, b)); err != ErrNone {
			t.Errorf("%s: New = %v, %v; want ErrNone", name, table, err)
		}
	}
}

// For a table of Go 1.15, Lookup must return the same functions and lines as debug/gosym. The table
// is from the tests of debug/gosym.
func TestGo12TableIsThatOfGosym(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip(err)
	}
	packed, err := os.Open(filepath.Join(strings.TrimSpace(string(root)), "src/debug/gosym/testdata/pcln115.gz"))
	if err != nil {
		t.Skip("no source of Go:", err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	// start of the text of a program for macOS; gosym does not use it for this version
	const text = 0x1001000
	gosymTable, err := gosym.NewTable(nil, gosym.NewLineTable(data, text))
	if err != nil {
		t.Fatal(err)
	}
	m := image{version: go12}.bytes()
	f := openBytes(t, withSegments(m[:64], data, text))
	table, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := table.entry(0)
	last, _ := table.entry(table.functions)
	random := rand.New(rand.NewPCG(1, 2))
	known := 0
	for range 10000 {
		addr := first + random.Uint64N(last-first)
		file, line, fn := gosymTable.PCToLine(addr)
		frames := table.Lookup(nil, addr)
		if len(frames) == 0 {
			if line > 0 {
				t.Errorf("%#x: nothing, want %s %s:%d", addr, fn.Name, file, line)
			}
			continue
		}
		known++
		if len(frames) != 1 || string(frames[0].Name) != fn.Name || frames[0].File != file || int(frames[0].Line) != line {
			t.Errorf("%#x: %+v, want %s %s:%d", addr, frames, fn.Name, file, line)
		}
	}
	if known < 5000 {
		t.Errorf("%d addresses known of 10000", known)
	}
}

// withSegments returns an ELF file with the given ELF header, a segment of code at text, and a
// segment of data.
func withSegments(header, data []byte, text uint64) []byte {
	w := image{}.writer()
	w.Write(header)
	for i, p := range []struct{ flags, off, addr, size uint64 }{
		{uint64(elf.PF_R | elf.PF_X), 0, text &^ 0xfff, 16 << 20}, {uint64(elf.PF_R), 0x1000, 0x8000000, uint64(len(data))}, {},
	} {
		w.u32(map[bool]uint32{true: uint32(elf.PT_LOAD), false: uint32(elf.PT_NULL)}[i < 2], uint32(p.flags))
		w.word(p.off, p.addr, p.addr, p.size, p.size, 1)
	}
	w.Write(make([]byte, 0x1000-w.Len()))
	w.Write(data)
	return w.Bytes()
}

func FuzzTable(f *testing.F) {
	for _, m := range layouts() {
		f.Add(m.bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		t.Cleanup(fuzztest.Watch(t, t.Name()))
		visit(b)
	})
}
