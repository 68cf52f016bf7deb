package object

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// UnwindRange must return the same bounds as readelf, with and without the search table.
func TestUnwindRangesAreThoseOfReadelf(t *testing.T) {
	fuzztest.WithoutRace(t)
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf")
	}
	line := regexp.MustCompile(`FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
	files := machineFiles(t)
	random := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for _, i := range random.Perm(len(files))[:min(len(files), 12)] {
		path := files[i]
		out, err := exec.Command("readelf", "--debug-dump=frames", "--wide", path).Output()
		if err != nil {
			continue
		}
		var want []unwindRange
		for _, m := range line.FindAllSubmatch(out, -1) {
			start, _ := strconv.ParseUint(string(m[1]), 16, 64)
			end, _ := strconv.ParseUint(string(m[2]), 16, 64)
			want = append(want, unwindRange{start, end})
		}
		table, walk := open(t, path), open(t, path)
		walk.unwind.d = &walk.sectionData
		s, ok := walk.Section(".eh_frame")
		if !ok || len(want) == 0 {
			continue
		}
		data, err := walk.Data(".eh_frame")
		if err != nil {
			t.Fatal(err)
		}
		walk.unwind.walk(data, s.Addr)
		if len(walk.unwind.ranges) == 0 || table.unwind.count != 0 {
			t.Errorf("%s: %d functions by walking", path, len(walk.unwind.ranges))
		}
		for _, r := range want {
			for _, addr := range []uint64{r.start, r.start + random.Uint64N(r.end-r.start), r.end - 1} {
				for how, f := range map[string]*File{"table": table, "walk": walk} {
					start, end, ok := f.UnwindRange(addr)
					if start != r.start || end != r.end || !ok {
						t.Fatalf("%s: by %s: UnwindRange(%#x) = %#x, %#x, %v; want %#x, %#x", path, how, addr, start, end, ok, r.start, r.end)
					}
				}
				compared++
			}
		}
		if start, end, ok := table.UnwindRange(0); ok {
			t.Errorf("%s: UnwindRange(0) = %#x, %#x", path, start, end)
		}
		if table.unwind.ranges != nil {
			t.Errorf("%s: a table was built although there is one", path)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d addresses compared", compared)
	}
}

func TestExidxBoundsFunctionsOfArm(t *testing.T) {
	f := open(t, filepath.Join("testdata", "thumb32.elf"))
	for _, name := range []string{"run", "twice"} {
		for addr := uint64(0); addr < 1<<18; addr += 2 {
			sym, ok := f.Symbol(addr)
			if !ok || string(sym.Name) != name {
				continue
			}
			if start, end, ok := f.UnwindRange(addr); !ok || start > sym.Addr || end < sym.Addr+sym.Size {
				t.Errorf("UnwindRange(%#x), in %s: %#x, %#x, %v", addr, name, start, end, ok)
			}
		}
	}
}

// A symbol without a size must not reach into another function, unlike in llvm-symbolizer.
func TestUnsizedSymbolsEndWithTheirFunction(t *testing.T) {
	f := open(t, filepath.Join("testdata", "whole.elf"))
	sym := func(name string) Symbol {
		t.Helper()
		s, _ := f.Section(".text")
		for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
			if sym, ok := f.Symbol(addr); ok && string(sym.Name) == name {
				return sym
			}
		}
		t.Fatalf("no %s", name)
		return Symbol{}
	}
	run, twice := sym("run"), sym("twice")
	first, second := run, twice
	if twice.Addr < run.Addr {
		first, second = twice, run
	}
	// the same table with the first symbol alone, without its size
	b := bytes.Clone(f.mapped)
	g, err := openBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i := range g.sections {
		if s := &g.sections[i]; s.Type == elf.SHT_SYMTAB {
			for off := s.Offset; off < s.Offset+s.Size; off += symSize64 {
				entry := b[off : off+symSize64]
				if addr := g.header.u64(entry[8:]); addr == first.Addr && entry[4]&15 == byte(elf.STT_FUNC) {
					clear(entry[16:24])
				} else if entry[4]&15 == byte(elf.STT_FUNC) {
					entry[6], entry[7] = 0, 0 // undefined
				}
			}
		}
		if g.sections[i].Type == elf.SHT_DYNSYM {
			g.sections[i].Type = elf.SHT_PROGBITS
		}
	}
	if s, ok := g.Symbol(first.Addr + 1); !ok || s.Size != 0 || string(s.Name) != string(first.Name) {
		t.Errorf("Symbol in %s: %s, %v", first.Name, s.Name, ok)
	}
	if s, ok := g.Symbol(second.Addr); ok {
		t.Errorf("Symbol in %s: %s, want none", second.Name, s.Name)
	}
	if s, ok := g.SymbolReaching(second.Addr); !ok || string(s.Name) != string(first.Name) {
		t.Errorf("SymbolReaching in %s: %s, %v; want %s as llvm-symbolizer has it", second.Name, s.Name, ok, first.Name)
	}
}

func FuzzUnwind(f *testing.F) {
	o := open(f, filepath.Join("testdata", "whole.elf"))
	frames, _ := o.Data(".eh_frame")
	header, _ := o.Data(".eh_frame_hdr")
	f.Add(frames, header, uint64(0x1000), false)
	f.Add([]byte("\x10\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x1b\x00\x00\x00\x10\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"), []byte(nil), uint64(0), true)
	f.Fuzz(func(t *testing.T, frames, header []byte, addr uint64, exidx bool) {
		watch(t)
		for _, m := range layouts {
			first := uint64(ehdrSize64 + 3*phdrSize64)
			if m.is32() {
				first = ehdrSize32 + 3*phdrSize32
			}
			if exidx && m.is32() && !m.big {
				m.machine = elf.EM_ARM
			} else {
				m.machine = elf.EM_X86_64
			}
			at := (uint64(len(frames)) + 7) &^ 7
			m.segments = []Segment{
				{Type: elf.PT_LOAD, Flags: elf.PF_X, Offset: first, Addr: 0x1000, FileSize: at + uint64(len(header)), MemSize: 1 << 20},
				{Type: elf.PT_GNU_EH_FRAME, Addr: 0x1000 + at, FileSize: uint64(len(header))},
				{Type: 0x70000001, Addr: 0x1000, FileSize: uint64(len(frames))},
			}
			m.sections = []imageSection{
				{Section{Name: ".eh_frame", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x1000}, string(frames)},
				{Section{Name: ".other", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000 + at}, string(header)},
			}
			o, err := openBytes(m.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range []uint64{addr, 0x1000, 0, ^uint64(0)} {
				if start, end, ok := o.UnwindRange(a); ok && (start > a || a >= end) {
					t.Errorf("UnwindRange(%#x) = %#x, %#x", a, start, end)
				}
			}
			o.Close()
		}
	})
}
