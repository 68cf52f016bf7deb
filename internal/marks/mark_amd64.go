package marks

import "sync"

// hasAVX2 reports whether the processor has AVX2 and POPCNT, and the system keeps their registers.
// It runs the CPUID instruction only when first needed: virtual machines trap it, which takes 10 µs
// or more.
var hasAVX2 = sync.OnceValue(askAVX2)

func askAVX2() bool

// findOpenAVX2 returns the offset of the first "{{{" in b. If b has none, the result at is less
// than 34 bytes before the end of b. The result lines is the number of line ends in b[:at].
// findOpenAVX2 needs AVX2 and POPCNT.
//
//go:noescape
func findOpenAVX2(b []byte) (at, lines int)

// FindOpen returns the offset of the first "{{{" in b, or len(b), and the number of line ends
// before it.
//
// It reads every byte of every log. Apart from copying, it takes most of the time of a log without
// markup. bytes.Index and bytes.Count take four times as long on logs with single braces, such as
// JSON.
func FindOpen(b []byte) (at, lines int) {
	if len(b) > 2 && b[0] == '{' && b[1] == '{' && b[2] == '{' {
		return 0, 0 // usual within a backtrace of markup
	}
	if hasAVX2() {
		if at, lines = findOpenAVX2(b); at+2 < len(b) && b[at] == '{' && b[at+1] == '{' && b[at+2] == '{' {
			return at, lines
		}
	}
	restAt, restLines := findOpenGo(b[at:])
	return at + restAt, lines + restLines
}

// listMarksAVX2 searches b in steps of 64 offsets for candidates: offsets at which there may be a
// mark. It lists the n steps with candidates. It stops after 64 steps or when fewer than 66 bytes
// are left. The result at is the first unsearched offset, and lines the number of line ends before
// that offset. listMarksAVX2 needs AVX2.
//
//go:noescape
func listMarksAVX2(b []byte, t *markTables, list *markList) (at, lines, n int)

// listMarks is listMarksAVX2 for any processor. Without AVX2 it lists nothing and returns 0.
func listMarks(b []byte, t *markTables, list *markList) (at, lines, n int) {
	if !hasAVX2() {
		return 0, 0, 0
	}
	return listMarksAVX2(b, t, list)
}

// tablesOf returns the tables for marks. Four bits select an entry of each table: bits of the first
// byte, of the third, of the sum of both, or of the second. A search with these tables takes 1.4
// times as long as FindOpen. The usual six tables, for both halves of three bytes, take 1.8 times
// as long.
//
// The bits were chosen by counting false candidates in logs: one in 1,600 bytes of hex dumps ("
// 0c"), one in 2,200 of XML ("</x"), and at most one in 6,000 of other logs. The sums are
// (x+y+1)>>1 because AVX2 computes that in one instruction. The shift moves a high bit of a byte
// into its low four bits, and no bit into another byte.
func tablesOf(marks []Mark) *markTables {
	t := new(markTables)
	for _, m := range marks {
		second, third := int(m.Rest[0]), int(m.Rest[1])
		for _, first := range []byte(m.First) {
			for i, bits := range [4]int{int(first), third, (int(first) + third + 1) >> 3, (second + 1) >> 1} {
				t[i][bits&15] |= 1 << m.Bucket
			}
		}
	}
	for i := range 16 {
		t[4][i], t[5][i] = 15, '\n'
	}
	return t
}
