package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// plainImage returns m with the most common parts: code, a symbol table and a build ID.
func plainImage(t testing.TB, m image) image {
	m.segments = []Segment{{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0x1000, FileSize: 32, MemSize: 32}}
	m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, []imageSymbol{{"f", 0x1000, 32, elf.STT_FUNC, elf.STB_GLOBAL, 1}})...)
	m.sections = append(m.sections, imageSection{Section{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE, Flags: elf.SHF_ALLOC}, m.note("ID of 8 b")})
	return m
}

// richImage is plainImage with more parts: links, a package note, MiniDebugInfo, a dynamic symbol
// table, unwind information and relocations.
func richImage(t testing.TB, m image) image {
	inner := plainImage(t, m).bytes(t)
	m = plainImage(t, m)
	crc := m.writer()
	crc.u32(0x12345678)
	const frames = "\x10\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x1b\x00\x00\x00" +
		"\x10\x00\x00\x00\x18\x00\x00\x00\xe4\xef\xff\xff\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	relas := m.writer()
	relas.word(0x1008, 8, 0x1000)
	note := m.writer()
	note.u32(4, 14, ntFDOPackaging)
	note.WriteString("FDO\x00" + `{"type":"deb"}` + "\x00\x00")
	m.sections = append(m.sections,
		imageSection{Section{Name: ".gnu_debuglink", Type: elf.SHT_PROGBITS}, "a.debug\x00" + crc.String()},
		imageSection{Section{Name: ".gnu_debugaltlink", Type: elf.SHT_PROGBITS}, "a.dwz\x0012345678901234567890"},
		imageSection{Section{Name: ".note.package", Type: elf.SHT_NOTE}, note.String()},
		imageSection{Section{Name: miniSection, Type: elf.SHT_PROGBITS}, xzOf(t, inner, 1<<12)},
		imageSection{Section{Name: ".eh_frame", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x2000}, frames},
		imageSection{Section{Name: ".rela.dyn", Type: elf.SHT_RELA, Flags: elf.SHF_ALLOC}, relas.String()},
	)
	at := len(m.sections) + 2
	m.sections = append(m.sections, m.symtab(t, elf.SHT_DYNSYM, at, []imageSymbol{{"g", 0x1010, 0, elf.STT_FUNC, elf.STB_GLOBAL, 1}})...)
	return m
}

// note returns a build ID note.
func (m image) note(id string) string {
	w := m.writer()
	w.u32(4, uint32(len(id)), ntGNUBuildID)
	w.WriteString("GNU\x00" + id)
	w.Write(make([]byte, -len(id)&3))
	return w.String()
}

// visit calls all methods of a file. It fails the test if Data returns an error of an undocumented
// type.
func visit(t testing.TB, f *File) {
	t.Helper()
	for _, s := range f.Sections() {
		data, err := f.Data(s.Name)
		if err != nil && data != nil {
			t.Errorf("Data(%s): %d bytes beside %v", s.Name, len(data), err)
		}
		if rest, ok := strings.CutPrefix(s.Name, zdebug); ok {
			f.Data(".debug_" + rest)
		}
		f.ExecCovers(s.Addr)
		for _, addr := range []uint64{s.Addr, s.Addr + s.Size/2, s.Addr + s.Size - 1} {
			byPass(f)
			pass, passOK := f.Symbol(addr)
			byTable(f)
			table, tableOK := f.Symbol(addr)
			if passOK != tableOK || pass.index != table.index || !bytes.Equal(pass.Name, table.Name) || passOK && len(pass.Name) == 0 {
				t.Errorf("Symbol(%#x) by pass = %+v, %v; by table %+v, %v", addr, pass, passOK, table, tableOK)
			}
			f.SourceFile(pass)
			f.CallEndsAt(addr)
			f.Loaded(addr)
			if start, end, ok := f.UnwindRange(addr); ok && (start > addr || addr >= end) {
				t.Errorf("UnwindRange(%#x) = %#x, %#x", addr, start, end)
			}
			if named := f.SymbolsNamed(string(pass.Name)); passOK && len(named) == 0 {
				t.Errorf("SymbolsNamed(%q): none", pass.Name)
			}
		}
	}
	f.ExecCovers(0)
	f.ExecCovers(math.MaxUint64)
	f.CallEndsAt(0)
	f.CallEndsAt(math.MaxUint64)
	f.Loaded(math.MaxUint64)
	f.RelativeRelocations(func(uint64, uint64) bool { return true })
	f.DebugLink()
	f.AltLink()
	f.PackageNote()
	f.Inflate(".debug_info", ".debug_line")
	if m, err := f.Mini(); m != nil && err != nil {
		t.Errorf("Mini() = a file and %v", err)
	}
	if f.Footprint() <= 0 {
		t.Errorf("Footprint() = %d", f.Footprint())
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := f.Data(".text"); err == nil {
		t.Error("Data after Close: no error")
	}
	if _, ok := f.Symbol(0x1000); ok {
		t.Error("Symbol after Close: found")
	}
}

func byPass(f *File)  { f.symbols.lookups, f.symbols.passed, f.symbols.sorted = 0, 0, nil }
func byTable(f *File) { f.symbols.lookups = linearLookups }

func TestATruncatedFileOpensOrErrs(t *testing.T) {
	for _, make := range []func(testing.TB, image) image{plainImage, richImage} {
		truncate(t, make)
	}
}

func truncate(t *testing.T, make func(testing.TB, image) image) {
	for _, m := range layouts {
		t.Run(m.name(), func(t *testing.T) {
			whole := make(t, m).bytes(t)
			for n := range whole {
				b := whole[:n:n]
				if id, err := BuildID(bytes.NewReader(b), int64(n)); err == nil && string(id) != "ID of 8 b" {
					t.Errorf("BuildID of the first %d bytes = %q", n, id)
				}
				f, err := openBytes(b)
				if err != nil {
					continue
				}
				if len(f.Sections()) != 0 || f.Damage() == nil {
					t.Errorf("the first %d bytes: %d sections, damage %v; the section headers are at the end", n, len(f.Sections()), f.Damage())
				}
				visit(t, f)
				// as if the file had been truncated after its size was read
				if f, err := Open(bytes.NewReader(b), int64(len(whole)), nil); err == nil {
					visit(t, f)
				}
			}
			f, err := openBytes(whole)
			if err != nil || f.Damage() != nil {
				t.Fatalf("the whole: %v, damage %v", err, f.Damage())
			}
			visit(t, f)
		})
	}
}

func TestEveryByteMayBeAnything(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, make := range []func(testing.TB, image) image{plainImage, richImage} {
		change(t, make)
	}
}

func change(t *testing.T, make func(testing.TB, image) image) {
	for _, m := range layouts {
		t.Run(m.name(), func(t *testing.T) {
			whole := make(t, m).bytes(t)
			for i := range whole {
				for k, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
					if (i+k)%3 != 0 && os.Getenv("TEST_LONG") != "1" {
						continue
					}
					b := bytes.Clone(whole)
					b[i] = v
					BuildID(bytes.NewReader(b), int64(len(b)))
					if f, err := openBytes(b); err == nil {
						visit(t, f)
					}
				}
			}
		})
	}
}

// Offsets of fields in the ELF-64 header.
const (
	ePhoff, eShoff                                           = 32, 40
	ePhentsize, ePhnum, eShentsize, eShnum, eShstrndx        = 54, 56, 58, 60, 62
	shInfo64, shSize64, shLink64, shOffset64, shType64, sh64 = 44, 32, 40, 24, 4, 64
)

func TestHostileHeaders(t *testing.T) {
	le := binary.LittleEndian
	section := func(b []byte, i int) []byte { return b[int(le.Uint64(b[eShoff:]))+i*sh64:] }
	tests := []struct {
		name   string
		change func(b []byte)
		// error of Open; empty if Open succeeds
		want string
		// numbers of sections and segments, and the error of Damage, if Open succeeds
		sections, segments int
		damage             string
	}{
		{name: "unchanged", change: func([]byte) {}, sections: 8, segments: 1},
		{name: "no magic", change: func(b []byte) { b[0] = 0 }, want: "ELF header: no ELF magic in the first 4 bytes"},
		{name: "class 3", change: func(b []byte) { b[4] = 3 }, want: "ELF header: class 3 is neither ELF-32 nor ELF-64"},
		{name: "byte order 0", change: func(b []byte) { b[5] = 0 }, want: "ELF header: byte order 0 is neither little nor big endian"},
		{name: "version 0", change: func(b []byte) { b[6] = 0 }, want: "ELF header: unknown version 0"},
		{name: "section headers of 63 bytes", change: func(b []byte) { b[eShentsize] = 63 }, want: "ELF header: section headers have 63 bytes each, not 64"},
		{name: "program headers of no bytes", change: func(b []byte) { b[ePhentsize] = 0 }, want: "ELF header: program headers have 0 bytes each, not 56"},
		{name: "section headers behind the end", change: func(b []byte) { le.PutUint64(b[eShoff:], 1<<40) }, segments: 1,
			damage: "section headers: 8 at 0x10000000000 reach beyond the end of the file (826 bytes)"},
		{name: "section headers at the end of the world", change: func(b []byte) { le.PutUint64(b[eShoff:], math.MaxUint64) }, segments: 1,
			damage: "section headers: 8 at 0xffffffffffffffff reach beyond the end of the file (826 bytes)"},
		{name: "one section header too many", change: func(b []byte) { b[eShnum]++ }, segments: 1,
			damage: "section headers: 9 at 0x13a reach beyond the end of the file (826 bytes)"},
		{name: "no sections", change: func(b []byte) { le.PutUint64(b[eShoff:], 0) }, segments: 1},
		{name: "program headers behind the end", change: func(b []byte) { le.PutUint64(b[ePhoff:], 1<<63) }, sections: 8,
			damage: "program headers: 1 at 0x8000000000000000 reach beyond the end of the file (826 bytes)"},
		{name: "both behind the end", change: func(b []byte) { le.PutUint64(b[ePhoff:], 1<<63); le.PutUint64(b[eShoff:], 1<<63) },
			want: "section headers: 8 at 0x8000000000000000 reach beyond the end of the file (826 bytes); program headers: 1 at 0x8000000000000000 reach beyond the end of the file (826 bytes)"},
		{name: "names in a section that is not there", change: func(b []byte) { b[eShstrndx] = 8 }, sections: 8, segments: 1,
			damage: "section names: in section 8 of 8"},
		{name: "names without bytes", change: func(b []byte) { b[eShstrndx] = 2 }, sections: 8, segments: 1,
			damage: "section names: 256 bytes at 0x98 are not in the file (826 bytes)"},
		{name: "names behind the end", change: func(b []byte) { le.PutUint64(section(b, 7)[shSize64:], math.MaxUint64) }, sections: 8, segments: 1,
			damage: "section names: 18446744073709551615 bytes at 0xf8 are not in the file (826 bytes)"},
		{name: "no names", change: func(b []byte) { b[eShstrndx] = 0 }, sections: 8, segments: 1},
		{name: "count of sections in section 0", change: func(b []byte) { b[eShnum] = 0; section(b, 0)[shSize64] = 8 }, sections: 8, segments: 1},
		{name: "hostile count of sections in section 0", change: func(b []byte) { b[eShnum] = 0; le.PutUint64(section(b, 0)[shSize64:], 1<<58) }, segments: 1,
			damage: "288230376151711744 section headers: the limit is 262144"},
		{name: "count of sections in section 0, beyond the file", change: func(b []byte) { b[eShnum] = 0; le.PutUint64(section(b, 0)[shSize64:], 262144) }, segments: 1,
			damage: "section headers: 262144 at 0x13a reach beyond the end of the file (826 bytes)"},
		{name: "index of names in section 0", change: func(b []byte) { le.PutUint16(b[eShstrndx:], 0xffff); section(b, 0)[shLink64] = 7 }, sections: 8, segments: 1},
		{name: "count of segments in section 0", change: func(b []byte) { le.PutUint16(b[ePhnum:], 0xffff); section(b, 0)[shInfo64] = 1 }, sections: 8, segments: 1},
		{name: "hostile count of segments in section 0", change: func(b []byte) {
			le.PutUint16(b[ePhnum:], 0xffff)
			le.PutUint32(section(b, 0)[shInfo64:], math.MaxUint32)
		}, sections: 8, damage: "4294967295 program headers: the limit is 262144"},
		{name: "count of segments in section 0, without sections", change: func(b []byte) { le.PutUint16(b[ePhnum:], 0xffff); le.PutUint64(b[eShoff:], 0) },
			want: "ELF header: the number of program headers is in section 0, but there are no sections"},
		{name: "section 0 behind the end", change: func(b []byte) { b[eShnum] = 0; le.PutUint64(b[eShoff:], 824) }, segments: 1,
			damage: "section header 0: at 0x338, beyond the end of the file (826 bytes)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := plainImage(t, layouts[0]).bytes(t)
			tt.change(b)
			f, err := openBytes(b)
			if err != nil {
				if err.Error() != tt.want {
					t.Errorf("Open: %v; want %s", err, tt.want)
				}
				return
			}
			if tt.want != "" {
				t.Errorf("opens, want %s", tt.want)
			}
			damage := ""
			if f.Damage() != nil {
				damage = f.Damage().Error()
			}
			if len(f.Sections()) != tt.sections || len(f.Segments()) != tt.segments || damage != tt.damage {
				t.Errorf("%d sections, %d segments, damage %q; want %d, %d, %q", len(f.Sections()), len(f.Segments()), damage, tt.sections, tt.segments, tt.damage)
			}
			visit(t, f)
		})
	}
}

func TestBuildIDComesFromSegmentsThenSections(t *testing.T) {
	for _, m := range layouts {
		t.Run(m.name(), func(t *testing.T) {
			note := imageSection{Section{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE}, m.note("by section")}
			other := imageSection{Section{Name: ".other", Type: elf.SHT_PROGBITS}, m.note("by segment")}
			withSegment := func(off, size, align uint64, sections ...imageSection) image {
				m := m
				m.segments = []Segment{{Type: elf.PT_LOAD, FileSize: 1 << 40}, {Type: elf.PT_NOTE, Offset: off, FileSize: size, Align: align}}
				m.sections = sections
				return m
			}
			l := layout{is64: !m.is32()}
			first := uint64(l.pick(ehdrSize32+2*phdrSize32, ehdrSize64+2*phdrSize64))
			tests := []struct {
				name string
				file image
				want string
			}{
				{"segment", withSegment(first, uint64(len(other.data)), 4, other, note), "by segment"},
				{"segment of the wrong alignment", withSegment(first, uint64(len(other.data)), 8, other, note), "by segment"},
				{"segment behind the end", withSegment(1<<31, 36, 4, other, note), "by section"},
				{"segment of nothing", withSegment(first, 0, 4, other, note), "by section"},
				{"segment of other bytes", withSegment(0, 64, 4, other, note), "by section"},
				{"segment larger than the file", withSegment(first, 1<<31, 4, other, note), "by segment"},
				{"no note", withSegment(first, 4, 4, other), ""},
			}
			for _, tt := range tests {
				b := tt.file.bytes(t)
				id, err := BuildID(bytes.NewReader(b), int64(len(b)))
				if string(id) != tt.want || (tt.want == "") != errors.Is(err, ErrNoBuildID) {
					t.Errorf("%s: BuildID = %q, %v; want %q", tt.name, id, err, tt.want)
				}
			}
		})
	}
}

func TestNotesAreSearchedForOneMebibyte(t *testing.T) {
	m := layouts[0]
	filler := strings.Repeat(noteOf("fill", 1, strings.Repeat("x", 1000), 4), 1100)
	m.sections = []imageSection{
		{Section{Name: ".note.many", Type: elf.SHT_NOTE}, filler},
		{Section{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE}, m.note("too far")},
	}
	b := m.bytes(t)
	r := &countingReader{r: bytes.NewReader(b)}
	if id, err := BuildID(r, int64(len(b))); !errors.Is(err, ErrNoBuildID) {
		t.Errorf("BuildID = %q, %v; want ErrNoBuildID", id, err)
	}
	if r.bytes > maxNotes+4096 {
		t.Errorf("%d bytes read, want %d and the headers", r.bytes, maxNotes)
	}
}

// A countingReader counts the bytes that are read.
type countingReader struct {
	r     *bytes.Reader
	bytes int
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.bytes += n
	return n, err
}

func TestReadErrorsAreNotFormatErrors(t *testing.T) {
	b := plainImage(t, layouts[0]).bytes(t)
	reads := 0
	for fail := 0; ; fail++ {
		r := &failingReader{r: bytes.NewReader(b), fail: fail}
		f, err := Open(r, int64(len(b)), nil)
		if err == nil {
			err = f.Damage()
			visit(t, f)
		}
		if r.count <= fail {
			reads = fail
			break
		}
		if err != nil && !errors.Is(err, errRead) {
			t.Errorf("read %d fails: Open: %v, want the error of the reader", fail, err)
		}
	}
	if reads < 5 {
		t.Errorf("all went well after %d failing reads; the headers alone are 4", reads)
	}
}

var errRead = errors.New("input/output error")

// A failingReader fails one of its reads.
type failingReader struct {
	r           *bytes.Reader
	count, fail int
}

func (c *failingReader) ReadAt(p []byte, off int64) (int, error) {
	c.count++
	if c.count-1 == c.fail {
		return 0, errRead
	}
	return c.r.ReadAt(p, off)
}

func TestSectionNamesAreCutAtTheirLimit(t *testing.T) {
	m := layouts[0]
	long := "." + strings.Repeat("n", maxName)
	m.sections = []imageSection{{Section{Name: long, Type: elf.SHT_PROGBITS}, "x"}, {Section{Name: ".data", Type: elf.SHT_PROGBITS}, "y"}}
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Sections()[1].Name; got != long[:maxName] {
		t.Errorf("a name of %d bytes, want the first %d of %d", len(got), maxName, len(long))
	}
	if data, err := f.Data(".data"); string(data) != "y" || err != nil {
		t.Errorf("Data(.data) = %q, %v", data, err)
	}
}

func TestExecCovers(t *testing.T) {
	const rx = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	load := []Segment{{Type: elf.PT_LOAD, Flags: elf.PF_X, Addr: 0x1000, MemSize: 0x1000}, {Type: elf.PT_LOAD, Flags: elf.PF_W, Addr: 0x4000, MemSize: 0x1000}}
	text := []imageSection{{Section{Name: ".text", Type: elf.SHT_NOBITS, Flags: rx, Addr: 0x1100, Size: 0x10}, ""}, {Section{Name: ".data", Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC, Addr: 0x1200, Size: 0x10}, ""}}
	zero := []imageSection{{Section{Name: ".text", Type: elf.SHT_NOBITS, Flags: rx, Addr: 0, Size: 0x10}, ""}}
	top := []imageSection{{Section{Name: ".text", Type: elf.SHT_NOBITS, Flags: rx, Addr: math.MaxUint64 - 15, Size: 0x20}, ""}}
	tests := []struct {
		name     string
		segments []Segment
		sections []imageSection
		yes, no  []uint64
	}{
		{"sections", load, text, []uint64{0x1100, 0x110f}, []uint64{0, 0x10ff, 0x1110, 0x1200, 0x4000}},
		{"segments where there are no sections", load, nil, []uint64{0x1000, 0x1fff}, []uint64{0, 0xfff, 0x2000, 0x4000}},
		{"address 0 is code", nil, zero, []uint64{0, 15}, []uint64{16, math.MaxUint64}},
		{"the end of the address space", nil, top, []uint64{math.MaxUint64 - 15, math.MaxUint64}, []uint64{math.MaxUint64 - 16, 0, 1}},
		{"nothing", nil, nil, nil, []uint64{0, 0x1000}},
	}
	for _, tt := range tests {
		f, err := openBytes(image{segments: tt.segments, sections: tt.sections}.bytes(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range tt.yes {
			if !f.ExecCovers(addr) {
				t.Errorf("%s: ExecCovers(%#x) = false", tt.name, addr)
			}
		}
		for _, addr := range tt.no {
			if f.ExecCovers(addr) {
				t.Errorf("%s: ExecCovers(%#x) = true", tt.name, addr)
			}
		}
	}
}
