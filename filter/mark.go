package filter

import "bytes"

const esc = 0x1b

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// findOpenGo is FindOpen for any processor.
func findOpenGo(b []byte) (at, lines int) {
	at = bytes.Index(b, markupOpen)
	if at < 0 {
		at = len(b)
	}
	return at, bytes.Count(b[:at], newline)
}

// marks are the three-byte strings that findMark searches for: one of the bytes of first, and rest.
//
// For the vector search the marks are in eight buckets, which share tables. Marks in one bucket give
// false candidates, and the distribution here makes few: "wn}" is rare, but with '\n' in the bucket of
// '<' each ":0x" would be one.
var marks = [...]struct {
	first, rest string
	bucket      int
}{
	{"{", "{{", 0},
	{"w", "n]", 0},
	{" ", "pc", 1},
	{" n", "ip", 2},
	{`"`, `o"`, 3},
	{"@", " 0", 4},
	{"C", "=0", 5},
	{" [(@+\n", "0x", 6},
	{"\t<>", "0x", 7},
}

// markBytes has for each place in a mark and each byte the set of marks with the byte at the place,
// as bits.
var markBytes = func() (sets [3][256]uint16) {
	for i, m := range marks {
		for _, c := range []byte(m.first) {
			sets[0][c] |= 1 << i
		}
		sets[1][m.rest[0]] |= 1 << i
		sets[2][m.rest[1]] |= 1 << i
	}
	return sets
}()

// isMark reports whether b, of at least three bytes, begins with a mark.
func isMark(b []byte) bool {
	return markBytes[0][b[0]]&markBytes[1][b[1]]&markBytes[2][b[2]] != 0
}

// searchMarkGo is searchMark for any processor.
func searchMarkGo(b []byte) (at, lines int) {
	at = len(b)
	for i := 0; i+2 < len(b); i++ {
		if isMark(b[i : i+3 : i+3]) {
			at = i
			break
		}
	}
	return at, bytes.Count(b[:at], newline)
}
