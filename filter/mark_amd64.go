package filter

import (
	"math/bits"

	"golang.org/x/sys/cpu"

	"github.com/symfilter/symfilter/dialect"
)

// findOpenAVX2 returns the offset of the first "{{{" in b and the number of line ends before it. It
// stops at an offset less than 34 bytes before the end of b, and returns that offset and the number
// of line ends before it. It needs AVX2 and POPCNT.
//
//go:noescape
func findOpenAVX2(b []byte) (at, lines int)

// FindOpen returns the offset of the first "{{{" in b, or len(b) if there is none, and the number
// of line ends before that offset.
//
// It reads every byte of every log, and apart from copying takes most of the time of a log without
// markup. bytes.Index and bytes.Count take four times as long on logs with single braces, such as
// JSON.
func FindOpen(b []byte) (at, lines int) {
	if len(b) > 2 && b[0] == '{' && b[1] == '{' && b[2] == '{' {
		return 0, 0 // a line of a backtrace that follows another
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		if at, lines = findOpenAVX2(b); at+2 < len(b) && b[at] == '{' && b[at+1] == '{' && b[at+2] == '{' {
			return at, lines
		}
	}
	restAt, restLines := findOpenGo(b[at:])
	return at + restAt, lines + restLines
}

// markRound is the number of offsets that findMarkAVX2 looks at together.
const markRound = 64

// findMarkAVX2 searches b in steps of 64 offsets for candidates: offsets at which there may be a
// mark. It returns the offset of the first step with candidates, the number of line ends before it,
// and the candidates and the line ends of the step, as bits. If there are no candidates it returns
// the offset of the first step without 66 bytes to read. It needs AVX2.
//
//go:noescape
func findMarkAVX2(b []byte, t *markTables) (at, lines int, candidates, ends uint64)

// markTables are the operands of findMarkAVX2: four tables, a mask of four bits, and '\n'. Each
// table maps four bits of the three bytes at an offset to the set of buckets with a mark that has
// the same four bits. An offset is a candidate if all four sets have a bucket in common.
type markTables [6][16]byte

// vectorTables select by four bits each of the first byte, the third, the sum of both, and the
// second. With the usual six tables, for both halves of three bytes, the search takes 1.8 times as
// long as FindOpen, with these 1.4 times.
//
// The bits were chosen by counting false candidates in logs: one in 1,600 bytes of hex dumps ("
// 0c"), one in 2,200 of XML ("</x"), and one in 6,000 or fewer of other logs. The sums are
// (x+y+1)>>1 because AVX2 computes that in one instruction, in which a high bit of a byte moves to
// its low four, but to no other byte.
var vectorTables, escapedTables = tablesOf(marks), tablesOf(escapedMarks)

func tablesOf(marks []mark) *markTables {
	t := new(markTables)
	for _, m := range marks {
		second, third := int(m.rest[0]), int(m.rest[1])
		for _, first := range []byte(m.first) {
			for i, bits := range [4]int{int(first), third, (int(first) + third + 1) >> 3, (second + 1) >> 1} {
				t[i][bits&15] |= 1 << m.bucket
			}
		}
	}
	for i := range 16 {
		t[4][i], t[5][i] = 15, '\n'
	}
	return t
}

// searchTables is searchMarkGo, with the tables of sets.
func searchTables(b []byte, from int, t *markTables, sets *markSets, r *dialect.Reader) (at, lines int) {
	at = from
	for cpu.X86.HasAVX2 {
		n, l, candidates, ends := findMarkAVX2(b[at:], t)
		at, lines = at+n, lines+l
		if candidates == 0 {
			break
		}
		for ; candidates != 0; candidates &= candidates - 1 {
			i := bits.TrailingZeros64(candidates)
			if sets.begin(b[at+i:at+i+3]) && (r == nil || r.MayMatch(b, at+i)) {
				return at + i, lines + bits.OnesCount64(ends&(1<<i-1))
			}
		}
		at, lines = at+markRound, lines+bits.OnesCount64(ends)
	}
	restAt, restLines := searchMarkGo(b, at, sets, r)
	return restAt, lines + restLines
}

// searchMark is searchMarkGo for marks.
func searchMark(b []byte, from int, r *dialect.Reader) (at, lines int) {
	return searchTables(b, from, vectorTables, markBytes, r)
}

// searchEscaped is searchMarkGo for escapedMarks.
func searchEscaped(b []byte) (at, lines int) {
	return searchTables(b, 0, escapedTables, escapedBytes, nil)
}
