package dwarf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"debug/elf"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// mutations is the number of damaged inputs of TestMutations.
const mutations = 20000

// A sample has the debug sections of a file, and addresses in its code.
type sample struct {
	sec   sections
	addrs []uint64
}

// dataOf returns a Data with these sections, without a file.
func dataOf(sec sections) *Data {
	for id := range sec.loaded {
		sec.loaded[id] = true
	}
	return newData(sec)
}

// tinySamples returns the sections of the committed ELF files.
func tinySamples(t testing.TB) []sample {
	t.Helper()
	var all []sample
	for _, path := range tinyFiles(t) {
		o := openObject(t, path)
		s := sample{sec: sections{big: o.Order == binary.BigEndian}}
		for id, name := range sectionNames {
			data, err := o.Data(name)
			if err != nil {
				t.Fatal(err)
			}
			s.sec.data[id] = bytes.Clone(data)
		}
		for _, sec := range o.Sections() {
			if sec.Flags&elf.SHF_EXECINSTR != 0 {
				for addr := sec.Addr; addr < sec.Addr+sec.Size; addr += 23 {
					s.addrs = append(s.addrs, addr)
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// exercise looks up each address twice: with nothing parsed, and with all units that earlier
// lookups have parsed. It fails the test if the answers differ.
func exercise(t testing.TB, sec sections, addrs []uint64) {
	t.Helper()
	d := dataOf(sec)
	for range 2 {
		for _, addr := range addrs {
			warm, _ := d.Lookup(nil, addr)
			cold, _ := dataOf(sec).Lookup(nil, addr)
			if !slices.EqualFunc(warm, cold, equalFrames) {
				t.Errorf("address %#x (-warm +cold):\n%s", addr, cmp.Diff(warm, cold, cmpopts.EquateEmpty()))
			}
			if len(warm) > maxFrames {
				t.Errorf("address %#x: %d frames", addr, len(warm))
			}
			if len(warm) > 0 {
				d.Source(addr, warm[0].File)
			}
		}
	}
	checkFootprint(t, d)
	d.Shrink(0)
	if n := d.Footprint(); n != 0 {
		t.Errorf("%d bytes are held after Shrink(0)", n)
	}
}

// checkFootprint fails the test if the running count of heap bytes is wrong.
func checkFootprint(t testing.TB, d *Data) {
	t.Helper()
	held := int64(0)
	for u := range d.units.all() {
		held += u.footprint()
	}
	for table := range d.abbrevs.all() {
		held += table.footprint()
	}
	if d.held != held {
		t.Errorf("%d bytes are counted, %d are held", d.held, held)
	}
	checkScratch(t, d)
}

// checkScratch fails the test if d, or a file that it has opened, keeps a scratch after a lookup.
func checkScratch(t testing.TB, d *Data) {
	t.Helper()
	if d.scratch != nil {
		t.Error("a scratch is kept")
	}
	if d.links == nil {
		return
	}
	if d.links.alt != nil {
		checkScratch(t, d.links.alt)
	}
	for _, f := range d.links.files {
		if f.data != nil {
			checkScratch(t, f.data)
		}
	}
	if p := d.links.pack; p != nil && p.data != nil {
		checkScratch(t, p.data)
	}
}

// equalFrames reports whether two frames are equal. It ignores Ref, Details, and the fields that
// only describe parts of File.
func equalFrames(a, b Frame) bool {
	return bytes.Equal(a.Name, b.Name) && a.HasLinkage == b.HasLinkage && a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Inlined == b.Inlined
}

func TestTruncatedSections(t *testing.T) {
	for _, s := range tinySamples(t) {
		for id := range s.sec.data {
			whole := s.sec.data[id]
			cut := s.sec
			for n := range whole {
				cut.data[id] = whole[:n:n]
				done := fuzztest.Watch(t, n)
				d := dataOf(cut)
				for i := 0; i < len(s.addrs); i += 3 {
					d.Lookup(nil, s.addrs[i])
				}
				done()
			}
		}
	}
}

func TestMutations(t *testing.T) {
	fuzztest.WithoutRace(t)
	samples := tinySamples(t)
	r := rand.New(rand.NewPCG(3, 4))
	interesting := []byte{0, 1, 0x7f, 0x80, 0xff}
	for range mutations {
		s := samples[r.IntN(len(samples))]
		var changed [numSections]bool
		for range 1 + r.IntN(8) {
			id := r.IntN(int(numSections))
			data := s.sec.data[id]
			if len(data) == 0 {
				continue
			}
			if !changed[id] {
				data = bytes.Clone(data)
				s.sec.data[id], changed[id] = data, true
			}
			at := r.IntN(len(data))
			switch r.IntN(3) {
			case 0:
				data[at] = byte(r.Uint32())
			case 1:
				data[at] = interesting[r.IntN(len(interesting))]
			case 2:
				data[at] ^= 1 << r.IntN(8)
			}
		}
		done := fuzztest.Watch(t, s.sec.data[:])
		exercise(t, s.sec, []uint64{s.addrs[r.IntN(len(s.addrs))], s.addrs[r.IntN(len(s.addrs))]})
		done()
	}
}

// parts returns the bytes of items: an int is one byte, a string ends with a NUL, and other numbers
// have the size of their type.
func parts(order binary.ByteOrder, items ...any) []byte {
	var b bytes.Buffer
	for _, item := range items {
		switch v := item.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte(0)
		case []byte:
			b.Write(v)
		case int: // a byte
			b.WriteByte(byte(v))
		default:
			binary.Write(&b, order, v)
		}
	}
	return b.Bytes()
}

func leb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// unit4 returns .debug_info with one unit of version 4 with 8-byte addresses.
func unit4(body []byte) []byte {
	return parts(binary.LittleEndian, uint32(len(body)+7), uint16(4), uint32(0), 8, body)
}

// unit2 is unit4 with version 2.
func unit2(body []byte) []byte {
	b := unit4(body)
	b[4] = 2
	return b
}

// lines5 returns .debug_line with one table of version 5 with file tables and a program.
func lines5(files, program []byte) []byte {
	header := parts(binary.LittleEndian, 1, 1, 1, 0xfb, 14, 13, []byte{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}, files)
	return parts(binary.LittleEndian, uint32(8+len(header)+len(program)), uint16(5), 8, 0, uint32(len(header)), header, program)
}

func TestReferenceCycles(t *testing.T) {
	// abbreviations by code. 1: a unit at [0x1000,0x2000); 2: a function with an abstract origin
	// and code; 3: a function without code
	abbrev := parts(binary.LittleEndian,
		1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0,
		2, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData4, attrAbstractOrigin, formRef4, 0, 0,
		3, tagSubprogram, 0, attrAbstractOrigin, formRef4, 0, 0,
		4, tagSubprogram, 0, attrSpecification, formRefAddr, 0, 0,
		0)
	const first = 11 + 13 // the offset of the function; later entries are at 41, 46 and 51
	tests := []struct {
		name string
		refs []uint32 // references of the function at 24 and of later entries
	}{
		{"itself", []uint32{24}},
		{"two", []uint32{41, 24}},
		{"three, not back to the first", []uint32{41, 46, 41}},
		{"beyond the unit", []uint32{1 << 31}},
		{"into the header", []uint32{3}},
		{"into the middle of an entry", []uint32{26}},
		{"the unit", []uint32{11}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := parts(binary.LittleEndian, 1, uint64(0x1000), uint32(0x1000), 2, uint64(0x1000), uint32(0x1000), tt.refs[0])
			for _, ref := range tt.refs[1:] {
				body = append(body, parts(binary.LittleEndian, 3, ref)...)
			}
			body = append(body, parts(binary.LittleEndian, 4, uint32(first), 0)...)
			var sec sections
			sec.data[secAbbrev], sec.data[secInfo] = abbrev, unit4(body)
			defer fuzztest.Watch(t, tt.name)()
			got, err := dataOf(sec).Lookup(nil, 0x1234)
			if err != nil {
				t.Fatal(err)
			}
			want := []Frame{{}}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestHostileLineTables(t *testing.T) {
	abbrev := parts(binary.LittleEndian, 1, tagCompileUnit, 0, attrLowPC, formAddr, attrHighPC, formData4, attrStmtList, formSecOffset, 0, 0, 0)
	info := unit4(parts(binary.LittleEndian, 1, uint64(0x1000), uint32(0x1000), uint32(0)))
	directory := parts(binary.LittleEndian, 1, lnctPath, formString, 1, "/src")
	file := parts(binary.LittleEndian, 1, lnctPath, formString, 2, "a.c", "b.c")
	setAddress := parts(binary.LittleEndian, 0, 9, lneSetAddress, uint64(0x1000))
	end := parts(binary.LittleEndian, lnsAdvancePC, leb(0x1000), 0, 1, lneEndSequence)
	counts := func(n uint64) []byte {
		return parts(binary.LittleEndian, 1, lnctPath, formString, leb(n), "/src")
	}
	good := []Frame{{File: "/src/b.c", Line: 3}}
	tests := []struct {
		name    string
		files   []byte
		program []byte
		want    []Frame
		damaged bool
	}{
		{"a good one", bytes.Join([][]byte{directory, file}, nil), bytes.Join([][]byte{setAddress, {lnsAdvanceLine, 2, lnsCopy}, end}, nil), good, false},
		{"2^28 directories", counts(1 << 28), bytes.Join([][]byte{setAddress, {lnsCopy}, end}, nil), nil, true},
		{"2^36 directories", counts(1 << 36), bytes.Join([][]byte{setAddress, {lnsCopy}, end}, nil), nil, true},
		{"2^62 directories", counts(1 << 62), bytes.Join([][]byte{setAddress, {lnsCopy}, end}, nil), nil, true},
		{"directories of no bytes", parts(binary.LittleEndian, 0, leb(1<<20)), bytes.Join([][]byte{setAddress, {lnsCopy}, end}, nil), nil, true},
		{"entries of 255 fields", parts(binary.LittleEndian, 255), bytes.Join([][]byte{setAddress, {lnsCopy}, end}, nil), nil, true},
		{"file 2^63", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsSetFile}, leb(1 << 63), {lnsCopy}, end}, nil), nil, false},
		{"column 2^63", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsAdvanceLine, 2, lnsSetColumn}, leb(1 << 63), {lnsCopy}, end}, nil), good, false},
		{"an advance over the end of the address space", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsCopy, lnsAdvancePC}, leb(1<<64 - 1), {lnsCopy}, {lnsAdvancePC}, leb(1<<64 - 1), {lnsCopy}, end}, nil),
			[]Frame{{File: "/src/b.c", Line: 1}}, false},
		{"an unknown extended opcode", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsAdvanceLine, 2, 0, 3, 0x80, 1, 1, lnsCopy}, end}, nil), good, false},
		{"an extended opcode of no bytes", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsAdvanceLine, 2, 0, 0, lnsCopy}, end}, nil), good, false},
		{"an extended opcode beyond the end", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsCopy, 0}, leb(1 << 40)}, nil), nil, true},
		{"an operand cut off", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsCopy, lnsAdvancePC, 0x80}}, nil), nil, true},
		{"no end of the sequence", bytes.Join([][]byte{directory, file}, nil),
			bytes.Join([][]byte{setAddress, {lnsCopy, lnsAdvancePC, 1, lnsCopy}}, nil), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sec sections
			sec.data[secAbbrev], sec.data[secInfo], sec.data[secLine] = abbrev, info, lines5(tt.files, tt.program)
			defer fuzztest.Watch(t, tt.name)()
			d := dataOf(sec)
			for _, tier := range []string{"cold", "warm"} {
				got, err := d.Lookup(nil, 0x1234)
				if diff := cmp.Diff(got, tt.want, cmp.Comparer(equalFrames)); diff != "" {
					t.Errorf("%s (-got +want):\n%s", tier, diff)
				}
				if (err != nil) != tt.damaged {
					t.Errorf("%s: got error %v, want one: %v", tier, err, tt.damaged)
				}
			}
		})
	}
}

func TestDeepNesting(t *testing.T) {
	// nested inlined calls that all cover the address
	abbrev := parts(binary.LittleEndian,
		1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0,
		2, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData4, attrName, formString, 0, 0,
		3, tagInlinedSubroutine, 1, attrLowPC, formAddr, attrHighPC, formData1, attrCallLine, formData2, 0, 0,
		0)
	tests := []struct {
		depth   int
		frames  int
		damaged bool
	}{
		{100, 101, false},
		{127, 128, false},
		{200, maxFrames, false},
		{maxDepth - 1, maxFrames, false},
		{1 << 16, maxFrames, true},
	}
	for _, tt := range tests {
		body := parts(binary.LittleEndian, 1, uint64(0x1000), uint32(0x1000), 2, uint64(0x1000), uint32(0x1000), "outer")
		for i := range tt.depth {
			body = append(body, parts(binary.LittleEndian, 3, uint64(0x1000), 100, uint16(i+1))...)
		}
		body = append(body, make([]byte, tt.depth+2)...)
		var sec sections
		sec.data[secAbbrev], sec.data[secInfo] = abbrev, unit4(body)
		done := fuzztest.Watch(t, tt.depth)
		got, err := dataOf(sec).Lookup(nil, 0x1001)
		done()
		if len(got) != tt.frames || (err != nil) != tt.damaged {
			t.Errorf("depth %d: got %d frames, error %v; want %d, an error: %v", tt.depth, len(got), err, tt.frames, tt.damaged)
			continue
		}
		if name := string(got[len(got)-1].Name); name != "outer" {
			t.Errorf("depth %d: the last frame is %q", tt.depth, name)
		}
	}
}

// Limits of one lookup in TestWorkIsBounded. Without bounds, the inputs would take minutes or
// gigabytes; on an idle machine they take 0.3 s.
const (
	mostTime  = 20 * time.Second
	mostAlloc = 256 << 20 // bytes allocated, live or not
)

// A hostileCost is an input of TestWorkIsBounded.
type hostileCost struct {
	name string
	sec  [numSections][]byte
}

// TestWorkIsBounded looks up an address in inputs of 100 KiB to 1 MiB that would take quadratic
// time.
func TestWorkIsBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	order := binary.LittleEndian
	head := []any{1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0}
	root := parts(order, 1, uint64(0x1000), uint32(0x1000))
	repeat := func(p []byte, n int) []byte { return bytes.Repeat(p, n) }
	tests := []hostileCost{
		{"many functions with one long range list", [numSections][]byte{
			secAbbrev: parts(order, append(head, 2, tagSubprogram, 0, attrRanges, formSecOffset, 0, 0, 0)...),
			secInfo:   unit4(append(root, repeat(parts(order, 2, uint32(0)), 200000)...)),
			secRanges: repeat(parts(order, uint64(1), uint64(2)), 60000),
		}},
		{"many units with one long range list", [numSections][]byte{
			secAbbrev: parts(order, 1, tagCompileUnit, 0, attrRanges, formSecOffset, 0, 0, 0),
			secInfo:   repeat(unit4(parts(order, 1, uint32(0))), 60000),
			secRanges: repeat(parts(order, uint64(0x1000), uint64(0x1001)), 60000),
		}},
		{"many functions with a thousand attributes of no bytes", [numSections][]byte{
			secAbbrev: parts(order, append(append(head, 2, tagSubprogram, 0, attrRanges, formFlagPresent), repeat([]byte{attrName, formFlagPresent}, 1000), 0, 0, 0)...),
			secInfo:   unit4(append(root, repeat([]byte{2}, 3000000)...)),
		}},
		{"many inlined calls of no bytes", [numSections][]byte{
			secAbbrev: parts(order, append(head, 2, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0, 3, tagInlinedSubroutine, 0, 0, 0, 0)...),
			secInfo:   unit4(append(append(root, parts(order, 2, uint64(0x1000), uint32(0x1000))...), repeat([]byte{3}, 3000000)...)),
		}},
		{"names without an end", [numSections][]byte{
			secAbbrev: parts(order, append(head, 2, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData4, attrName, formStrp, 0, 0, 0)...),
			secInfo:   unit4(append(root, repeat(parts(order, 2, uint64(0x1000), uint32(0x1000), uint32(0)), 3000)...)),
			secStr:    repeat([]byte{'a'}, 64<<20),
		}},
		{"many units with a long abbreviation table", [numSections][]byte{ // alternately from the first and the second entry of the table
			secAbbrev: append(repeat([]byte{2, tagSubprogram, 0, 0, 0}, 60000), 1, tagCompileUnit, 0, 0, 0, 0),
			secInfo:   repeat(append(unit4([]byte{1}), parts(order, uint32(8), uint16(4), uint32(5), 8, 1)...), 200000),
		}},
		{"functions inside functions", [numSections][]byte{
			secAbbrev: parts(order, append(head, 2, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0, 0)...),
			secInfo:   unit4(append(root, repeat(parts(order, 2, uint64(0x1000), uint32(0x1000)), 100000)...)),
		}},
	}
	coldPart := parts(order, 3, uint64(0x1000), uint32(0x100000), coldPartPrefix)
	coldHead := append(head, 3, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData4, attrName, formString, 0, 0)
	for _, ranges := range []string{"apart", "overlapping"} {
		calls := append(append(root, coldPart...), parts(order, 2, uint64(0x500000), uint32(0x1000))...)
		for i := range uint64(60000) {
			lo, size := 0x1000+i*7919%60000*8, uint32(4)
			if ranges == "overlapping" {
				lo, size = 0x1000+i, 0x80000
			}
			calls = append(calls, parts(order, 4, lo, size)...)
		}
		tests = append(tests, hostileCost{"a cold part with many calls, " + ranges, [numSections][]byte{
			secAbbrev: parts(order, append(coldHead, 2, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0, 4, tagInlinedSubroutine, 0, attrLowPC, formAddr, attrHighPC, formData4, 0, 0, 0)...),
			secInfo:   unit2(append(calls, 0)),
		}})
	}
	tests = append(tests, hostileCost{"many cold parts, and functions inside functions", [numSections][]byte{
		secAbbrev: parts(order, append(coldHead, 2, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0, 0)...),
		secInfo:   unit2(append(append(root, repeat(coldPart, 3000)...), repeat(parts(order, 2, uint64(0x1000), uint32(0x1000)), 100000)...)),
	}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := dataOf(sections{data: tt.sec})
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				done := make(chan struct{})
				go func() {
					defer close(done)
					d.Lookup(nil, 0x1001)
				}()
				select {
				case <-done:
				case <-time.After(mostTime):
					t.Fatalf("a lookup takes more than %v", mostTime)
				}
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > mostAlloc {
					t.Errorf("a lookup allocates %d MiB, want at most %d", n>>20, mostAlloc>>20)
				}
			}
		})
	}
}

// Building the tables of the whole file must cost at most the budget of one lookup.
func TestTablesOfTheFileAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	zeros := make([]byte, 1<<30) // empty sets, and units without bytes
	for _, name := range []string{".debug_aranges", ".debug_info"} {
		d := newData(sections{load: func(section string) ([]byte, error) {
			if section == name {
				return zeros, nil
			}
			return nil, nil
		}})
		if _, err := d.Lookup(nil, 0x1000); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, ErrDamaged)
		}
		if n := d.Footprint(); n > 64<<20 {
			t.Errorf("%s: %d bytes are held", name, n)
		}
	}
}
