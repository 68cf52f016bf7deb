package dwarf

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

func TestForms(t *testing.T) {
	dwarf32, dwarf64 := encoding{5, 8, 4}, encoding{5, 4, 8}
	tests := []struct {
		name string
		form uint16
		enc  encoding
		big  bool
		data []byte
		want uint64
		size int // bytes that are read; -1: damaged
	}{
		{"addr", formAddr, dwarf32, false, parts(le, uint64(0x1122334455667788)), 0x1122334455667788, 8},
		{"addr of 4 bytes", formAddr, dwarf64, true, parts(be, uint32(0x11223344)), 0x11223344, 4},
		{"data1", formData1, dwarf32, false, []byte{0xfe}, 0xfe, 1},
		{"data2", formData2, dwarf32, true, []byte{1, 2}, 0x102, 2},
		{"strx3", formStrx3, dwarf32, false, []byte{1, 2, 3}, 0x030201, 3},
		{"addrx3, big-endian", formAddrx3, dwarf32, true, []byte{1, 2, 3}, 0x010203, 3},
		{"data4", formData4, dwarf32, false, []byte{1, 2, 3, 4}, 0x04030201, 4},
		{"data8", formData8, dwarf32, false, parts(le, uint64(7)), 7, 8},
		{"data16", formData16, dwarf32, false, make([]byte, 16), 0, 16},
		{"sdata", formSdata, dwarf32, false, []byte{0x80, 0x7f}, ^uint64(0) - 127, 2},
		{"sdata of 11 bytes", formSdata, dwarf32, false, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, ^uint64(0), 11},
		{"udata", formUdata, dwarf32, false, []byte{0xe5, 0x8e, 0x26}, 624485, 3},
		{"udata of 11 bytes", formUdata, dwarf32, false, []byte{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 1, 11},
		{"udata without an end", formUdata, dwarf32, false, []byte{0x80, 0x80}, 0, -1},
		{"implicit_const", formImplicitConst, dwarf32, false, nil, 42, 0},
		{"flag_present", formFlagPresent, dwarf32, false, nil, 1, 0},
		{"strp, 64-bit", formStrp, dwarf64, false, parts(le, uint64(9)), 9, 8},
		{"ref_addr", formRefAddr, dwarf32, false, parts(le, uint32(9)), 9, 4},
		{"ref_addr of version 2", formRefAddr, encoding{2, 8, 4}, false, parts(le, uint64(9)), 9, 8},
		{"string", formString, dwarf32, false, []byte("ab\x00c"), 0, 3},
		{"string without an end", formString, dwarf32, false, []byte("ab"), 0, -1},
		{"block1", formBlock1, dwarf32, false, []byte{2, 0, 0, 9}, 0, 3},
		{"block2", formBlock2, dwarf32, true, []byte{0, 1, 0, 9}, 0, 3},
		{"block4", formBlock4, dwarf32, false, []byte{1, 0, 0, 0, 9}, 0, 5},
		{"block, too long", formBlock, dwarf32, false, []byte{4, 0}, 0, -1},
		{"exprloc", formExprloc, dwarf32, false, []byte{0x81, 0x00, 7}, 0, 3},
		{"indirect", formIndirect, dwarf32, false, []byte{formData2, 1, 2}, 0x0201, 3},
		{"indirect twice", formIndirect, dwarf32, false, []byte{formIndirect, formData2, 1, 2}, 0, -1},
		{"indirect implicit_const", formIndirect, dwarf32, false, []byte{formImplicitConst, 1}, 0, -1},
		{"GNU_addr_index", formGNUAddrIndex, dwarf32, false, []byte{0x85, 0x01}, 133, 2},
		{"LLVM_addrx_offset", formLLVMAddrx, dwarf32, false, []byte{0x85, 0x01, 7, 0, 0, 0}, 133 | 7<<32, 6},
		{"ref_sup4", formRefSup4, dwarf32, true, []byte{0, 0, 1, 2}, 0x102, 4},
		{"ref_sup8", formRefSup8, dwarf32, false, parts(le, uint64(9)), 9, 8},
		{"strp_sup", formStrpSup, dwarf64, false, parts(le, uint64(9)), 9, 8},
		{"GNU_strp_alt", formGNUStrpAlt, dwarf32, false, []byte{1, 0, 0, 0}, 1, 4},
		{"addrx4", formAddrx4, dwarf32, false, []byte{1, 0, 0, 0}, 1, 4},
		{"strx4", formStrx4, dwarf32, true, []byte{0, 0, 0, 1}, 1, 4},
		{"rnglistx", formRnglistx, dwarf32, false, []byte{0x80, 0x01}, 128, 2},
		{"loclistx", formLoclistx, dwarf32, false, []byte{0x05}, 5, 1},
		{"ref_sig8", formRefSig8, dwarf32, false, parts(le, uint64(9)), 9, 8},
		{"GNU_ref_alt", formGNURefAlt, dwarf32, false, []byte{1, 0, 0, 0}, 1, 4},
		{"unknown", 0x7f, dwarf32, false, []byte{1, 2, 3, 4}, 0, -1},
		{"cut off", formData8, dwarf32, false, []byte{1, 2, 3, 4}, 0, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cursor{buf: tt.data, big: tt.big}
			got := c.value(tt.form, 42, tt.enc)
			if tt.size < 0 {
				if !c.bad {
					t.Errorf("got %d and %d bytes, want damage", got.u, c.pos)
				}
				return
			}
			if c.bad || got.u != tt.want || c.pos != tt.size {
				t.Errorf("got %#x and %d bytes, damaged: %v; want %#x and %d bytes", got.u, c.pos, c.bad, tt.want, tt.size)
			}
			if n := formSize(tt.form, tt.enc); n >= 0 && n != tt.size {
				t.Errorf("formSize: got %d, want %d", n, tt.size)
			}
			// skipping the attribute takes as many bytes as reading it, alone and between other
			// attributes
			for _, around := range []int{0, 3} {
				specs := parts(le, 1, tagNamespace, 0, leb(attrName), leb(uint64(tt.form)))
				data := tt.data[:tt.size]
				if tt.form == formImplicitConst {
					specs = append(specs, 42)
				}
				if around > 0 {
					specs = append(parts(le, 1, tagNamespace, 0, attrName, formStrx3), specs[3:]...)
					specs = append(specs, attrName, formStrx3)
					data = append(append(make([]byte, around), data...), make([]byte, around)...)
				}
				var table abbrevTable
				table.parse(cursor{buf: append(specs, 0, 0, 0)}, tt.enc, 0)
				if table.broken || len(table.list) != 1 {
					t.Fatal("the declaration is damaged")
				}
				if got := table.skip(data, 0, &table.list[0], tt.big); got != len(data) {
					t.Errorf("skipped %d bytes, want %d", got, len(data))
				}
			}
		})
	}
}

func TestRangeLists(t *testing.T) {
	const base = 0x1000
	addrs := parts(le, uint64(0), uint64(0x5000), uint64(0x6000)) // a header, then two addresses
	dead := ^uint64(0)
	tests := []struct {
		name    string
		version uint16
		list    []byte
		want    [][2]uint64
	}{
		{"offsets from the unit's base", 4, parts(le, uint64(1), uint64(2), uint64(5), uint64(9), uint64(0), uint64(0), uint64(1), uint64(2)),
			[][2]uint64{{base + 1, base + 2}, {base + 5, base + 9}}},
		{"base selection", 4, parts(le, dead, uint64(0x2000), uint64(1), uint64(2), dead, uint64(0), uint64(3), uint64(4), uint64(0), uint64(0)),
			[][2]uint64{{0x2001, 0x2002}, {3, 4}}},
		{"thrown away", 4, parts(le, dead, dead-1, uint64(1), uint64(2), dead, uint64(0), dead-1, dead-1, uint64(0), uint64(8), uint64(1), uint64(1), uint64(0), uint64(0)), nil},
		{"without an end", 4, parts(le, uint64(1), uint64(2)), [][2]uint64{{base + 1, base + 2}}},
		{"offset pairs", 5, parts(le, rleOffsetPair, leb(1), leb(300), rleOffsetPair, 5, 5, rleEndOfList), [][2]uint64{{base + 1, base + 300}}},
		{"base address", 5, parts(le, rleBaseAddress, uint64(0x2000), rleOffsetPair, 1, 2, rleEndOfList), [][2]uint64{{0x2001, 0x2002}}},
		{"base index", 5, parts(le, rleBaseAddressx, 1, rleOffsetPair, 1, 2, rleBaseAddressx, 2, rleOffsetPair, 1, 2, rleEndOfList), [][2]uint64{{0x6001, 0x6002}}},
		{"index and length", 5, parts(le, rleStartxLength, 0, 16, rleStartxLength, 9, 16, rleEndOfList), [][2]uint64{{0x5000, 0x5010}}},
		{"two indices", 5, parts(le, rleStartxEndx, 0, 1, rleStartxEndx, 1, 0, rleEndOfList), [][2]uint64{{0x5000, 0x6000}}},
		{"start and end", 5, parts(le, rleStartEnd, uint64(7), uint64(9), rleEndOfList), [][2]uint64{{7, 9}}},
		{"start and length", 5, parts(le, rleStartLength, uint64(7), leb(200), rleStartLength, uint64(0), 4, rleStartLength, dead, 4, rleEndOfList), [][2]uint64{{7, 207}}},
		{"thrown away base", 5, parts(le, rleBaseAddress, dead, rleOffsetPair, 1, 2, rleEndOfList), nil},
		{"unknown kind", 5, parts(le, rleStartEnd, uint64(7), uint64(9), 8), [][2]uint64{{7, 9}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sec sections
			sec.data[secAddr] = addrs
			v := value{form: formSecOffset}
			if tt.version == 5 {
				sec.data[secRnglists] = tt.list
			} else {
				sec.data[secRanges] = tt.list
			}
			d := dataOf(sec)
			d.work = maxWork
			u := &unit{d: d, enc: encoding{tt.version, 8, 4}, base: base, addrBase: 8}
			var got [][2]uint64
			for _, s := range u.appendPC(nil, value{}, value{}, v, 0) {
				got = append(got, [2]uint64{s.lo, s.hi})
			}
			if diff := cmp.Diff(got, tt.want, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestLineOpcodes(t *testing.T) {
	set := func(addr uint64) []byte { return parts(le, 0, 9, lneSetAddress, addr) }
	end := []byte{0, 1, lneEndSequence}
	type row struct {
		Addr         uint64
		Line         uint32
		File, Column uint16
	}
	tests := []struct {
		name    string
		table   lineTable // opBase 13, lineRange 14, lineBase -5 unless set
		program [][]byte
		want    []row
	}{
		{"special", lineTable{}, [][]byte{set(100), {13, 13 + 14 + 6, 255}, {lnsAdvancePC, 2}, end}, []row{{100, 0xfffffffc, 1, 0}, {101, 0xfffffffd, 1, 0}, {118, 0xfffffffc, 1, 0}}},
		{"const_add_pc, fixed_advance_pc", lineTable{}, [][]byte{set(100), {lnsConstAddPC, lnsCopy, lnsFixedAdvancePC, 1, 1, lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 1}, end},
			[]row{{117, 1, 1, 0}, {374, 2, 1, 0}}},
		{"instructions of 4 bytes", lineTable{minInst: 4}, [][]byte{set(100), {lnsCopy, 13 + 14 + 6, lnsAdvancePC, 2, lnsAdvanceLine, 1, lnsCopy, lnsFixedAdvancePC, 2, 0}, end},
			[]row{{100, 1, 1, 0}, {104, 2, 1, 0}, {112, 3, 1, 0}}},
		{"3 operations in an instruction", lineTable{minInst: 16, maxOps: 3}, [][]byte{set(96), {lnsCopy, 13 + 14 + 6, lnsCopy, 13 + 14*2 + 6, lnsAdvancePC, 4, lnsAdvanceLine, 1, lnsCopy}, end},
			[]row{{96, 2, 1, 0}, {112, 3, 1, 0}, {128, 4, 1, 0}}},
		{"unknown standard opcode", lineTable{opBase: 15, opLens: []byte{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0}},
			[][]byte{set(100), {13, 0x80, 1, 7, 14, lnsCopy, lnsAdvancePC, 1}, end}, []row{{100, 1, 1, 0}}},
		{"few standard opcodes", lineTable{opBase: 4, opLens: []byte{0, 1, 1}}, [][]byte{set(100), {4 + 5, 4 + 14 + 6, lnsAdvancePC, 1}, end},
			[]row{{100, 1, 1, 0}, {101, 2, 1, 0}}},
		{"file and column", lineTable{}, [][]byte{set(100), {lnsSetFile, 3, lnsSetColumn, 0x81, 1, lnsAdvanceLine, 0x7f, lnsSetISA, 5, lnsNegateStmt, lnsCopy, lnsAdvancePC, 1}, end}, []row{{100, 0, 3, 129}}},
		{"rows that say nothing new", lineTable{}, [][]byte{set(100), {13 + 14 + 5, 13 + 14 + 5, 13 + 14 + 6, 13 + 5, 13 + 6, 13 + 14 + 5, 13 + 14 + 4, lnsAdvancePC, 1}, end},
			[]row{{101, 1, 1, 0}, {103, 3, 1, 0}, {105, 2, 1, 0}}},
		{"sequences in any order", lineTable{}, [][]byte{set(200), {lnsCopy, lnsAdvancePC, 9}, end, set(100), {lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 9}, end},
			[]row{{100, 2, 1, 0}, {200, 1, 1, 0}}},
		{"thrown away", lineTable{}, [][]byte{set(0), {lnsCopy, lnsAdvancePC, 9}, end, set(^uint64(0)), {lnsCopy, lnsAdvancePC, 9}, end, set(^uint64(1)), {lnsCopy, lnsAdvancePC, 9}, end,
			set(100), {lnsCopy, lnsAdvancePC, 1}, end}, []row{{100, 1, 1, 0}}},
		{"rows out of order", lineTable{}, [][]byte{set(100), {lnsCopy}, set(120), {lnsAdvanceLine, 1, lnsCopy}, set(110), {lnsAdvanceLine, 1, lnsCopy}, set(90), {lnsCopy}, set(130), end},
			[]row{{100, 1, 1, 0}, {110, 3, 1, 0}, {120, 2, 1, 0}}},
		{"nothing but an end", lineTable{}, [][]byte{set(100), end}, nil},
		{"an end before the start", lineTable{}, [][]byte{set(100), {lnsCopy}, set(50), end}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newData(sections{})
			d.work = maxWork
			u := &unit{d: d, lines: tt.table}
			l := &u.lines
			l.opened, l.present, l.enc = true, true, encoding{5, 8, 4}
			l.minInst, l.maxOps, l.lineRange, l.lineBase = max(1, l.minInst), max(1, l.maxOps), 14, -5
			if l.opBase == 0 {
				l.opBase, l.opLens = 13, []byte{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
			}
			for _, p := range tt.program {
				l.program.buf = append(l.program.buf, p...)
			}
			var alone []lineHit
			u.coldLine(0)
			for addr := range uint64(400) {
				alone = append(alone, u.lineFromProgram(l.covering(addr), addr))
			}
			u.keepLines()
			if u.err != nil {
				t.Fatal(u.err)
			}
			var got []row
			for _, s := range l.seqs {
				for _, r := range l.rows[s.first : s.first+s.n] {
					got = append(got, row{s.lo + uint64(r.addr), r.line, r.file, r.column})
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
			var fromRows []lineHit
			for addr := range uint64(400) {
				kept := u.lineAt(addr)
				fromRows = append(fromRows, kept)
				if once := u.coldLine(addr); once != kept {
					t.Errorf("address %d: got %+v when nothing was kept, %+v from rows", addr, once, kept)
				}
				if alone[addr] != kept {
					t.Errorf("address %d: got %+v from one sequence, %+v from rows", addr, alone[addr], kept)
				}
			}
			u.keepStops()
			l.huge = true
			for addr, want := range fromRows {
				if got := u.lineAt(uint64(addr)); got != want && !l.lost {
					t.Errorf("address %d: got %+v from a stop, %+v from rows", addr, got, want)
				}
			}
		})
	}
}

func TestPaths(t *testing.T) {
	tests := []struct {
		name    string
		version uint16
		comp    string
		dirs    []string
		dir     uint32
		file    string
		want    string
	}{
		{"version 5, directory 0", 5, "/comp", []string{"/build", "inc"}, 0, "a.c", "/build/a.c"},
		{"version 5, relative directory", 5, "/comp", []string{"/build", "inc"}, 1, "a.h", "/comp/inc/a.h"},
		{"version 5, absolute directory", 5, "/comp", []string{"/build", "/usr/include"}, 1, "a.h", "/usr/include/a.h"},
		{"version 5, relative directory 0", 5, "/comp", []string{"build"}, 0, "a.c", "build/a.c"},
		{"version 5, no such directory", 5, "/comp", []string{"/build"}, 7, "a.c", "/comp/a.c"},
		{"version 4, directory 0", 4, "/comp", []string{"inc"}, 0, "a.c", "/comp/a.c"},
		{"version 4, relative directory", 4, "/comp", []string{"inc"}, 1, "a.h", "/comp/inc/a.h"},
		{"absolute name", 4, "/comp", []string{"inc"}, 1, "/src/a.c", "/src/a.c"},
		{"Windows' absolute name", 5, "/comp", []string{"inc"}, 1, `C:\a.c`, `C:\a.c`},
		{"no compilation directory", 4, "", []string{"inc"}, 1, "a.h", "inc/a.h"},
		{"not cleaned", 4, "/comp/", []string{"../inc/"}, 1, "./a.h", "/comp/../inc/./a.h"},
		{"no name", 5, "/comp", []string{"/build"}, 0, "", "/build"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sec sections
			str := func(s string) strRef {
				off := len(sec.data[secStr])
				sec.data[secStr] = append(sec.data[secStr], s+"\x00"...)
				return strRef{uint64(off), secStr, true}
			}
			u := &unit{compDir: str(tt.comp)}
			u.lines.opened, u.lines.present, u.lines.enc.version = true, true, tt.version
			f := &u.lines.files
			f.read, f.files = true, []fileEntry{{str(tt.file), tt.dir}}
			for _, dir := range tt.dirs {
				f.dirs = append(f.dirs, str(dir))
			}
			number := uint32(0)
			if tt.version < 5 {
				number = 1
			}
			u.d = dataOf(sec)
			u.funcs.scanned, u.lines.decoded = true, true
			u.lines.seqs = []sequence{{0, 3, 0, 3}}
			u.lines.rows = []lineRow{{0, 1, uint16(number) - 1, 0}, {1, 1, uint16(number), 0}, {2, 1, uint16(number) + 1, 0}}
			for addr, want := range []string{"", tt.want, ""} { // of the previous file, this file, and the next
				got := ""
				for _, f := range u.lookup(u, nil, uint64(addr)) {
					got += f.File
				}
				if got != want {
					t.Errorf("file %d: got %q, want %q", u.lines.rows[addr].file, got, want)
				}
			}
		})
	}
}

// Lookup must find a function's name in another unit, and a file that the line program defines. It
// must find strings and addresses by index, although the unit has no base.
func TestAcrossUnits(t *testing.T) {
	abbrev := parts(le,
		1, tagPartialUnit, 1, 0, 0,
		2, tagSubprogram, 0, attrName, formString, leb(attrMIPSLinkageName), formStrp, 0, 0,
		3, tagCompileUnit, 1, attrStmtList, formData4, attrLowPC, leb(formGNUAddrIndex), attrHighPC, formUdata, 0, 0,
		4, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formAddr, attrSpecification, formRefAddr, 0, 0,
		5, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData1, attrName, leb(formGNUStrIndex), 0, 0,
		0)
	first := unit4(parts(le, 1, 2, "f", uint32(1), 0))
	second := unit4(parts(le, 3, uint32(0), leb(1), leb(0x100),
		4, uint64(0x1000), uint64(0x1010), uint32(12),
		5, uint64(0x1010), 8, leb(1),
		0))
	extended := func(items ...any) []byte {
		body := parts(le, items...)
		return parts(le, 0, len(body), body)
	}
	program := parts(le, extended(lneSetAddress, uint64(0x1000)),
		extended(lneDefineFile, "x", 0), // its size is cut off
		extended(lneDefineFile, "d.c", 1, 0, 0), extended(lneDefineFile, "e.c", 0, 0, 0),
		lnsSetFile, 2, lnsCopy, lnsAdvancePC, leb(0x100), extended(lneEndSequence))
	header := parts(le, 1, 1, 0xfb, 14, 10, []byte{0, 1, 1, 1, 1, 0, 0, 0, 1}, "inc", 0, "m.c", []byte{1, 0, 0}, 0)
	var sec sections
	sec.data[secAbbrev] = abbrev
	sec.data[secInfo] = append(first, second...)
	sec.data[secStr] = []byte("\x00_Zf\x00g\x00")
	sec.data[secStrOffsets] = parts(le, uint32(0), uint32(5))
	sec.data[secAddr] = parts(le, uint64(0), uint64(0x1000))
	sec.data[secLine] = parts(le, uint32(6+len(header)+len(program)), uint16(2), uint32(len(header)), header, program)
	d := dataOf(sec)
	tests := []struct {
		addr uint64
		want []Frame
	}{
		{0xfff, nil},
		{0x1000, []Frame{{Name: []byte("_Zf"), HasLinkage: true, File: "inc/d.c", Line: 1}}},
		{0x1010, []Frame{{Name: []byte("g"), File: "inc/d.c", Line: 1}}},
		{0x1018, []Frame{{File: "inc/d.c", Line: 1}}},
		{0x1100, nil},
	}
	for _, tt := range tests {
		for range 2 {
			got, err := d.Lookup(nil, tt.addr)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want, cmp.Comparer(equalFrames)); diff != "" {
				t.Errorf("%#x (-got +want):\n%s", tt.addr, diff)
			}
		}
	}
}

func TestSectionThatCannotBeLoaded(t *testing.T) {
	bad := errors.New("no inflater")
	d := newData(sections{load: func(name string) ([]byte, error) { return nil, bad }})
	got, err := d.Lookup(nil, 1)
	if len(got) > 0 || !errors.Is(err, bad) {
		t.Errorf("got %v, %v; want the error of the section", got, err)
	}
}
