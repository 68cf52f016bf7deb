package dwarf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// lineSections returns a unit of [0x1000,2^32) with this line program.
func lineSections(program []byte) sections {
	order := binary.LittleEndian
	var sec sections
	sec.data[secAbbrev] = parts(order, 1, tagCompileUnit, 0, attrLowPC, formAddr, attrHighPC, formData4, attrStmtList, formSecOffset, 0, 0, 0)
	sec.data[secInfo] = unit4(parts(order, 1, uint64(0x1000), uint32(1<<32-0x1001), uint32(0)))
	files := parts(order, 1, lnctPath, formString, 1, "/src", 1, lnctPath, formString, 3, "a.c", "b.c", "c.c")
	sec.data[secLine] = lines5(files, program)
	return sec
}

func setAddress(addr uint64) []byte {
	return parts(binary.LittleEndian, 0, 9, lneSetAddress, addr)
}

var endSequence = parts(binary.LittleEndian, lnsAdvancePC, 1, 0, 1, lneEndSequence)

// In a table with too many rows to keep, each answer must equal the answer of a run of the whole
// program. All lookups but the first must be cheap.
func TestHugeLineTable(t *testing.T) {
	fuzztest.WithoutRace(t)
	const ends = 3 // sequences, in descending order of addresses
	r := rand.New(rand.NewPCG(1, 2))
	var program []byte
	var addrs []uint64
	for i := range ends {
		lo := 0x1000 + uint64(ends-1-i)<<28
		program = append(program, setAddress(lo)...)
		for n := range (maxRows + maxRows/4) / ends {
			if n%1000 == 0 {
				program = append(program, lnsSetFile, byte(r.IntN(3)), lnsSetColumn, byte(r.IntN(100)), lnsAdvanceLine, 10)
			}
			program = append(program, byte(13+r.IntN(200))) // rows, some of which are dropped
		}
		program = append(program, endSequence...)
		addrs = append(addrs, lo-1, lo, lo+1, lo+stopRows, lo+uint64(r.IntN(1<<22)), lo+uint64(r.IntN(1<<22)), lo+1<<27)
	}
	sec := lineSections(program)
	d, whole := dataOf(sec), dataOf(sec)
	if _, err := d.Lookup(nil, addrs[0]); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, addr := range addrs {
		got, err := d.Lookup(nil, addr)
		if err != nil {
			t.Fatal(err)
		}
		if steps := maxWork - d.work; steps > 1<<16 {
			t.Errorf("%#x: %d steps", addr, steps)
		}
		whole.work = maxWork
		u := whole.unitAt(0)
		u.openLines()
		row := u.coldLine(addr)
		var want []Frame
		if row.ok {
			lines++
			want = []Frame{{File: u.path(uint32(row.file)).text, Line: row.line, Column: uint32(row.column)}}
		}
		if diff := cmp.Diff(got, want, cmp.Comparer(equalFrames)); diff != "" {
			t.Errorf("%#x (-got +want):\n%s", addr, diff)
		}
	}
	if lines < len(addrs)/2 {
		t.Errorf("%d of %d addresses have a line", lines, len(addrs))
	}
	checkFootprint(t, d)
	if got := d.Footprint(); got > 1<<20 {
		t.Errorf("%d bytes are held, want at most 1 MiB", got)
	}
}

// A huge table must be given up at the first lookup if its rows are out of order, or if its stops
// would be too many or too far apart. Later lookups must fail in few steps.
func TestHugeLineTableIsGivenUpOnce(t *testing.T) {
	fuzztest.WithoutRace(t)
	rows := bytes.Repeat([]byte{0x1f, 0x21}, maxRows/2) // alternating lines n and n+1, so no row equals the previous one
	back := parts(binary.LittleEndian, lnsAdvancePC, leb(1<<64-100))
	tests := []struct {
		name    string
		program [][]byte
	}{
		{"back", [][]byte{setAddress(0x1000), rows, back, rows[:9], endSequence}},
		{"far apart", [][]byte{setAddress(0x1000), rows, bytes.Repeat([]byte{lnsNegateStmt}, 2*maxStopBytes), rows[:9], endSequence}},
		{"far from the end", [][]byte{setAddress(0x1000), rows, rows[:9], bytes.Repeat([]byte{lnsNegateStmt}, 2*maxStopBytes), endSequence}},
		{"many sequences", slices.Repeat([][]byte{setAddress(0x1000), {0x20}, endSequence}, maxStops)},
	}
	tests[3].program = append(tests[3].program, setAddress(0x1000), rows, rows[:9], endSequence)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := dataOf(lineSections(bytes.Join(tt.program, nil)))
			for i := range 3 {
				frames, err := d.Lookup(nil, 0x1001)
				if len(frames) > 0 || !errors.Is(err, ErrDamaged) {
					t.Errorf("got %v, %v; want nothing but an error", frames, err)
				}
				if steps := maxWork - d.work; i > 0 && steps > 1<<16 {
					t.Errorf("%d steps", steps)
				}
			}
			checkFootprint(t, d)
		})
	}
}

// Without memory for its rows, a line table must give the same answers: each lookup must run the
// program again, and keep nothing.
func TestLineTablesWithoutMemoryAnswerTheSame(t *testing.T) {
	program := setAddress(0x1000)
	for i := range manyRowBytes/24*rowBytes + 100 {
		program = append(program, byte(14+i%200))
	}
	program = append(program, endSequence...)
	sec := lineSections(program)
	rich, poor := dataOf(sec), dataOf(sec)
	var asked []int64
	leave := false
	poor.Afford(func(n int64) bool { asked = append(asked, n); return leave })
	for i, addr := range []uint64{0x1000, 0x2000, 0x3001, 0x4002} {
		want, err := rich.Lookup(nil, addr)
		if err != nil || len(want) != 1 || want[0].Line == 0 {
			t.Fatalf("Lookup(%#x) = %v, %v", addr, want, err)
		}
		leave = i == 3
		got, err := poor.Lookup(nil, addr)
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Errorf("Lookup(%#x): %v (-got +want):\n%s", addr, err, diff)
		}
		if n := poor.Footprint(); !leave && n > manyRowBytes/16 {
			t.Errorf("%d bytes are kept", n)
		}
	}
	if len(asked) != 3 || asked[0] < manyRowBytes { // the first lookup keeps no rows
		t.Errorf("asked for %v bytes, want three times more than %d", asked, manyRowBytes)
	}
	if n := poor.Footprint(); n < manyRowBytes/4 {
		t.Errorf("with leave only %d bytes are kept", n)
	}
}

// Kept rows, in any order, must give the same answers as a run of the whole program. Rows in the
// order of addresses are compacted while they are read, other rows after they were sorted.
func TestKeptRowsAnswerAsTheProgram(t *testing.T) {
	order := binary.LittleEndian
	r := rand.New(rand.NewPCG(3, 4))
	address := func() uint64 {
		if r.IntN(8) == 0 {
			return 0 // discarded code
		}
		return 0x1000 + uint64(r.IntN(64))
	}
	lines := 0
	for range 2000 {
		var program []byte
		for range 1 + r.IntN(3) {
			if r.IntN(4) > 0 {
				program = append(program, setAddress(address())...)
			}
			for range r.IntN(30) {
				switch r.IntN(12) {
				case 0:
					program = append(program, parts(order, lnsAdvancePC, leb(-uint64(r.IntN(9))))...)
				case 1:
					program = append(program, lnsSetFile, byte(r.IntN(3)))
				case 2:
					program = append(program, setAddress(address())...)
				default:
					program = append(program, byte(13+r.IntN(60))) // a row
				}
			}
			if r.IntN(10) > 0 {
				program = append(program, endSequence...)
			}
		}
		var units [2]*unit
		for i := range units {
			d := dataOf(lineSections(program))
			d.work = maxWork
			units[i] = d.unitAt(0)
			units[i].openLines()
		}
		kept, whole := units[0], units[1]
		kept.keepLines()
		for addr := uint64(0xff0); addr < 0x10a0; addr++ {
			got, want := kept.lineFromRows(addr), whole.coldLine(addr)
			if got != want {
				t.Fatalf("%#x in % x: got %v, want %v", addr, program, got, want)
			}
			if got.ok {
				lines++
			}
		}
	}
	if lines < 10000 {
		t.Errorf("%d addresses have a line", lines)
	}
}
