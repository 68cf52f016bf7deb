package dwarf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// FuzzLookup looks up addresses in sections with any bytes.
func FuzzLookup(f *testing.F) {
	for _, s := range tinySamples(f) {
		d := s.sec.data
		f.Add(d[secInfo], d[secAbbrev], d[secLine], d[secStr], d[secLineStr], d[secAranges], d[secRanges], d[secRnglists], d[secAddr], d[secStrOffsets],
			s.sec.big, s.addrs[0], s.addrs[len(s.addrs)/2])
	}
	f.Fuzz(func(t *testing.T, info, abbrev, line, str, lineStr, aranges, ranges, rnglists, addr, strOffsets []byte, big bool, one, two uint64) {
		sec := sections{big: big, data: [numSections][]byte{info, abbrev, line, str, lineStr, aranges, ranges, rnglists, addr, strOffsets}}
		defer fuzztest.Watch(t, sec.data[:])()
		exercise(t, sec, []uint64{one, two})
	})
}

// FuzzLine runs any bytes as a line program, with any header. A run for one address, and a run of a
// single sequence, must give the same rows as a run that keeps all rows.
func FuzzLine(f *testing.F) {
	program := parts(binary.LittleEndian, 0, 9, lneSetAddress, uint64(0x1000), lnsCopy, 0x20, 0x55, 0xff, lnsSetColumn, 7, lnsAdvanceLine, 0x7f,
		lnsSetFile, 1, lnsConstAddPC, lnsFixedAdvancePC, uint16(9), lnsCopy, lnsAdvancePC, 3, 0, 1, lneEndSequence)
	f.Add(program, uint8(1), uint8(1), int8(-5), uint8(14), uint8(13), false, uint64(0x1010))
	f.Add(program, uint8(4), uint8(3), int8(-1), uint8(0), uint8(10), false, uint64(0x1000))
	f.Add(program, uint8(0), uint8(0), int8(1), uint8(1), uint8(0), true, uint64(1))
	f.Add(append(slices.Clone(program), program...), uint8(1), uint8(1), int8(-5), uint8(14), uint8(20), false, uint64(0x1001))
	f.Fuzz(func(t *testing.T, program []byte, minInst, maxOps uint8, lineBase int8, lineRange, opBase uint8, big bool, addr uint64) {
		defer fuzztest.Watch(t, program)()
		d := newData(sections{big: big})
		d.work = maxWork
		u := &unit{d: d, lines: lineTable{
			opened: true, present: true, enc: encoding{5, 8, 4}, minInst: minInst, maxOps: max(1, maxOps), lineBase: lineBase,
			lineRange: lineRange, opBase: opBase, opLens: bytes.Repeat([]byte{1}, int(max(1, opBase)-1)), program: cursor{buf: program, big: big},
		}}
		once := u.lineAt(addr)
		if !u.lines.listed {
			t.Fatal("the sequences are not kept")
		}
		alone := u.lineFromProgram(u.lines.covering(addr), addr)
		u.lines.rerun = len(program) + 1
		kept := u.lineAt(addr)
		if !u.lines.decoded {
			t.Fatal("the rows are not kept")
		}
		if once != kept || alone != kept {
			t.Errorf("got %+v when nothing was kept, %+v from one sequence, %+v from rows", once, alone, kept)
		}
		for _, s := range u.lines.seqs {
			rows := u.lines.rows[s.first : s.first+s.n]
			if s.lo >= s.hi || !slices.IsSortedFunc(rows, func(a, b lineRow) int { return int(int64(a.addr) - int64(b.addr)) }) {
				t.Errorf("a sequence of [%#x,%#x) is not in order", s.lo, s.hi)
			}
		}
	})
}
