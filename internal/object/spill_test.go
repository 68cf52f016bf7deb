package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/symfilter/symfilter/internal/unpack"
)

// A purse grants memory up to its budget, and counts it.
type purse struct {
	budget      int64
	windowsOnly bool // memory for sections is not granted, memory for decoders is
	held, most  atomic.Int64
}

func (p *purse) take(n int64) error {
	if held := p.held.Add(n); held > p.budget || p.windowsOnly && n < unpack.MinWindow {
		p.held.Add(-n)
		return ErrMemory
	}
	p.most.Store(max(p.most.Load(), p.held.Load()))
	return nil
}

func (p *purse) give(n int64) { p.held.Add(-n) }

// packedImage returns an image with three compressed sections: two of 2.5 MB and one of 100 bytes.
func packedImage(t *testing.T) (image []byte, want map[string][]byte) {
	plain := func(c string) []byte { return []byte(strings.Repeat("section "+c+" of many bytes; ", 100000)) }
	m := layouts[0]
	one, two, three := m.compressed(elf.COMPRESS_ZLIB, 2500000, zlibOf(t, bytes.NewReader(plain("1")))), m.compressed(elf.COMPRESS_ZSTD, 2500000, zstdOf(t, bytes.NewReader(plain("2")))), m.compressed(elf.COMPRESS_ZLIB, 100, zlibOf(t, bytes.NewReader(plain("3")[:100])))
	one.Name, two.Name, three.Name = ".debug_info", ".debug_line", ".debug_str"
	m.sections = []imageSection{one, two, three}
	return m.bytes(t), map[string][]byte{".debug_info": plain("1"), ".debug_line": plain("2"), ".debug_str": plain("3")[:100]}
}

// Sections must have the same bytes on the heap, in granted memory and in a file. They must take
// only granted memory, and leave no file. Close must release all memory.
func TestSectionsSpill(t *testing.T) {
	if !canMap {
		t.Skip("nothing is mapped here")
	}
	b, want := packedImage(t)
	const all, window = 5000000, unpack.MinWindow
	for _, tt := range []struct {
		name           string
		budget         int64 // bytes; -1: all memory is granted, on the heap
		footprint      int64 // minimum bytes of heap, within some KiB
		taken          int64 // bytes, within some KiB
		inflateAtOnce  bool
		spills, denied bool
		windowsOnly    bool
	}{
		{name: "on the heap", budget: -1, footprint: all, inflateAtOnce: true},
		{name: "on the heap, one by one", budget: -1, footprint: all},
		{name: "granted", budget: 1 << 40, taken: all, inflateAtOnce: true},
		{name: "granted, one by one", budget: 1 << 40, taken: all},
		{name: "in a file", budget: window, spills: true, inflateAtOnce: true},
		{name: "in files, one by one", budget: window, spills: true, windowsOnly: true},
		{name: "no memory for the decoder", budget: window - 1, spills: true, denied: true, inflateAtOnce: true},
		{name: "nowhere", budget: window, denied: true, inflateAtOnce: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			p := &purse{budget: tt.budget, windowsOnly: tt.windowsOnly}
			o := Options{Take: p.take, Give: p.give}
			if tt.budget < 0 {
				o = Options{}
			}
			if tt.spills {
				o.SpillDir = dir
			}
			f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, o)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Spills() != tt.spills {
				t.Errorf("Spills() = %v", f.Spills())
			}
			if tt.inflateAtOnce {
				if err := f.Inflate(".debug_info", ".debug_line", ".debug_str"); errors.Is(err, ErrMemory) != tt.denied {
					t.Errorf("Inflate: %v", err)
				}
			}
			if tt.denied {
				if got, err := f.Data(".debug_line"); !errors.Is(err, ErrMemory) {
					t.Errorf("Data: %d bytes, %v; want no memory", len(got), err)
				}
				p.budget = 1 << 40 // a denial is not kept
			}
			for name, want := range want {
				if got, err := f.Data(name); err != nil || !bytes.Equal(got, want) {
					t.Errorf("Data(%s): %d bytes, %v", name, len(got), err)
				}
			}
			if tt.denied {
				return
			}
			const some = 1 << 16
			if n := f.Footprint(); n < tt.footprint || n > tt.footprint+some {
				t.Errorf("Footprint() = %d, want %d", n, tt.footprint)
			}
			if n := p.held.Load(); n < tt.taken || n > tt.taken+some {
				t.Errorf("%d bytes are taken, want %d", n, tt.taken)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%v are left", left)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if n := p.held.Load(); n != 0 {
				t.Errorf("%d bytes are still taken after Close", n)
			}
		})
	}
}

// No section may be inflated into a file in a directory in memory. The error must report such a
// directory.
func TestNothingSpillsToADirectoryInMemory(t *testing.T) {
	const shm = "/dev/shm"
	if !InMemory(shm) {
		t.Skip(shm + " is not in memory here")
	}
	if !InMemory(filepath.Join(shm, "symfilter", "not there")) {
		t.Error("a directory that does not exist yet is on a disk")
	}
	if InMemory("/proc/self") {
		t.Error("/proc is in memory")
	}
	dir, err := os.MkdirTemp(shm, "symfilter-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	b, _ := packedImage(t)
	p := &purse{budget: 1 << 20}
	f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{SpillDir: dir, Take: p.take, Give: p.give})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Data(".debug_info"); !errors.Is(err, ErrInMemory) || !errors.Is(err, ErrMemory) {
		t.Errorf("Data: %d bytes, %v; want that the directory is in memory", len(got), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// If the spill directory cannot be made, the error of Data must name the directory.
func TestASpillDirectoryThatCannotBeMadeIsNamed(t *testing.T) {
	b, _ := packedImage(t)
	p := &purse{budget: 1 << 20}
	f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{SpillDir: "/dev/null/x", Take: p.take, Give: p.give})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Data(".debug_info"); err == nil || canMap && !strings.Contains(err.Error(), "cannot inflate into a file: mkdir /dev/null") {
		t.Errorf("Data: %d bytes, %v", len(got), err)
	}
	if got, err := f.Data(".debug_str"); err != nil || len(got) != 100 {
		t.Errorf("Data of a small section: %d bytes, %v", len(got), err)
	}
}

// Beyond 1 GiB, the inflated size of all sections must not exceed a multiple of their compressed
// size.
func TestSectionsOfAFileTogetherAreNoBomb(t *testing.T) {
	m := layouts[0]
	for i, name := range []string{".debug_info", ".debug_line", ".debug_str", ".debug_abbrev", ".debug_addr"} {
		s := m.compressed(elf.COMPRESS_ZLIB, 300<<20, zlibOf(t, strings.NewReader("short"))+strings.Repeat("x", 400<<10))
		if i == 4 {
			s = m.compressed(elf.COMPRESS_ZLIB, 5, zlibOf(t, strings.NewReader("short")))
		}
		s.Name = name
		m.sections = append(m.sections, s)
	}
	b := m.bytes(t)
	var asked atomic.Int64
	refuse := func(n int64) error { asked.Add(n); return ErrMemory }
	f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{Take: refuse, Give: func(int64) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	u := f.Unpack(".debug_info", ".debug_line", ".debug_str")
	if u.Size() < 900<<20 {
		t.Errorf("three sections take %d bytes", u.Size())
	}
	if u := f.Unpack(".debug_info", ".debug_line", ".debug_str", ".debug_abbrev"); u.Size() != 0 {
		t.Errorf("four sections take %d bytes, want nothing: they are refused", u.Size())
	}
	f.Inflate(".debug_info", ".debug_line", ".debug_str", ".debug_abbrev", ".debug_addr")
	var limit *LimitError
	if _, err := f.Data(".debug_info"); !errors.As(err, &limit) || limit.Got != 1200<<20+5 {
		t.Errorf("Data(.debug_info): %v", err)
	}
	if asked.Load() != 0 {
		t.Errorf("%d bytes were asked for", asked.Load())
	}
}

// Memory for a damaged section must be released when its inflation fails, not only by Close.
func TestDamagedSectionsHoldNoMemory(t *testing.T) {
	const size = 2500000
	plain := strings.Repeat("section x of many bytes; ", size/25)
	half := func(s string) string { return s[:len(s)/2] }
	m := layouts[0]
	zlibbed, zstdded := m.compressed(elf.COMPRESS_ZLIB, size, half(zlibOf(t, strings.NewReader(plain)))), m.compressed(elf.COMPRESS_ZSTD, size, half(zstdOf(t, strings.NewReader(plain))))
	zlibbed.Name, zstdded.Name = ".debug_info", ".debug_line"
	whole := imageSection{Section{Name: ".debug_str", Type: elf.SHT_PROGBITS}, plain}
	xz := []byte(xzOf(t, []byte(plain), 1<<16))
	xz[len(xz)/2] ^= 1
	mini := imageSection{Section{Name: miniSection, Type: elf.SHT_PROGBITS}, string(xz)}
	noELF := mini
	noELF.data = xzOf(t, []byte(plain), 1<<16)
	for _, tt := range []struct {
		name    string
		section imageSection
		ask     func(f *File) error
	}{
		{"zlib", zlibbed, func(f *File) error { _, err := f.Data(".debug_info"); return err }},
		{"zlib, at once", zlibbed, func(f *File) error { f.Inflate(".debug_info"); _, err := f.Data(".debug_info"); return err }},
		{"zstd", zstdded, func(f *File) error { _, err := f.Data(".debug_line"); return err }},
		{"zstd, at once", zstdded, func(f *File) error { f.Inflate(".debug_line"); _, err := f.Data(".debug_line"); return err }},
		{"a file that cannot be read", whole, func(f *File) error { f.r = strings.NewReader(""); _, err := f.Data(".debug_str"); return err }},
		{"MiniDebugInfo", mini, func(f *File) error { _, err := f.Mini(); return err }},
		{"MiniDebugInfo that is not an ELF file", noELF, func(f *File) error { _, err := f.Mini(); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m.sections = []imageSection{tt.section}
			b := m.bytes(t)
			p := &purse{budget: 1 << 40}
			f, err := OpenWith(bytes.NewReader(b), int64(len(b)), nil, Options{Take: p.take, Give: p.give})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := tt.ask(f); err == nil || errors.Is(err, ErrMemory) {
				t.Errorf("got %v, want an error about the damage", err)
			}
			if held, most := p.held.Load(), p.most.Load(); held != 0 || f.Granted() != 0 || most < size {
				t.Errorf("%d bytes are held, %d granted to the file, %d were; want none, none, and %d", held, f.Granted(), most, size)
			}
		})
	}
}
