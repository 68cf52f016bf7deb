package marks

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// TestFindOpen compares the fast search with the standard library's, with the opening braces and
// line ends at every distance from the ends of the buffer.
func TestFindOpen(t *testing.T) {
	check := func(b []byte) {
		t.Helper()
		at, lines := FindOpen(b)
		wantAt := bytes.Index(b, markupOpen)
		if wantAt < 0 {
			wantAt = len(b)
		}
		if wantLines := bytes.Count(b[:wantAt], newline); at != wantAt || lines != wantLines {
			t.Fatalf("%q: got %d and %d lines, want %d and %d", b, at, lines, wantAt, wantLines)
		}
	}
	for n := range 200 {
		b := []byte(strings.Repeat("a{{\n", n/4+1)[:n])
		check(b)
		for i := 0; i+3 <= n; i++ {
			c := bytes.Clone(b)
			copy(c[i:], "{{{")
			check(c)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		b := make([]byte, r.IntN(300))
		for i := range b {
			b[i] = "{\nax}"[r.IntN(5)]
		}
		check(b)
	}
}

// findStep is the number of offsets that the vector search looks at together.
const findStep = 64

// markStrings lists all marks.
var markStrings = []string{
	"{{{", "pc ", "pc\x1b", " ip", "nip", `"o"`, "@ 0", "wn]", "]:0", "PC=", "d_o", " (/",
	" 0x", "\t0x", "[0x", "(0x", "@0x", "+0x", "<0x", ">0x", "m0x", "K0x", "\n0x",
}

// findMarkNaive is Find without tables.
func findMarkNaive(b []byte) (at, lines int) {
	if bytes.HasPrefix(b, []byte("0x")) {
		return 0, 0
	}
	for ; at < len(b); at++ {
		has := func(mark string) bool { return bytes.HasPrefix(b[at:], []byte(mark)) }
		if slices.ContainsFunc(markStrings, has) {
			if b[at] == '\n' {
				at++
			}
			break
		}
	}
	return at, bytes.Count(b[:at], newline)
}

// searchBySets is Search.Next without vectors.
func searchBySets(b []byte, sets *dialect.MarkBytes) (at, lines int) {
	for at+2 < len(b) && !sets.Begin(b[at:at+3]) {
		at++
	}
	if at+2 >= len(b) {
		at = len(b)
	}
	return at, bytes.Count(b[:at], newline)
}

// checkFindMark compares Find, FindEscaped and a Search with naive searches, for each mark in b. It
// also compares one Search for all marks with a new Search after each mark.
func checkFindMark(t *testing.T, b []byte) {
	t.Helper()
	all := NewSearch(b, nil)
	for rest := b; ; {
		at, lines := Find(rest)
		wantAt, wantLines := findMarkNaive(rest)
		if at != wantAt || lines != wantLines {
			t.Fatalf("%q: got %d and %d lines, want %d and %d", rest, at, lines, wantAt, wantLines)
		}
		search := NewSearch(rest, nil)
		wantAt, wantLines = searchBySets(rest, ordinarySet().sets)
		if at, lines := search.Next(0); at != wantAt || lines != wantLines {
			t.Fatalf("%q: got %d and %d lines, by the sets %d and %d", rest, at, lines, wantAt, wantLines)
		}
		if at, lines := all.Next(len(b) - len(rest)); at-len(b)+len(rest) != wantAt || lines != wantLines {
			t.Fatalf("%q: after the first %d bytes, got %d and %d lines, want %d and %d", b, len(b)-len(rest), at, lines, wantAt, wantLines)
		}
		wantAt, wantLines = searchBySets(rest, escapedSet().sets)
		if at, lines := FindEscaped(rest); at != wantAt || lines != wantLines {
			t.Fatalf("%q: escaped, got %d and %d lines, by the sets %d and %d", rest, at, lines, wantAt, wantLines)
		}
		if at == len(rest) {
			return
		}
		rest = rest[at+1:]
	}
}

// Each mark must be found at every distance from the ends of the buffer, among false candidates and
// line ends. A mark at the beginning of a line must be found on that line.
func TestFindMark(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, fill := range []string{"a{{\n", "wn}\n", "no mark\n", "\n", " 0c", "\xa0p\xe3"} {
		for n := range 3*findStep + 10 {
			checkFindMark(t, []byte(strings.Repeat(fill, n/len(fill)+1)[:n]))
		}
		for _, mark := range markStrings {
			for _, n := range []int{3, 4, findStep - 1, findStep + 1, findStep + 2, findStep + 3, 2*findStep + 2} {
				b := []byte(strings.Repeat(fill, n/len(fill)+1)[:n])
				for i := 0; i+3 <= n; i++ {
					c := bytes.Clone(b)
					copy(c[i:], mark)
					checkFindMark(t, c)
				}
			}
		}
	}
}

// Among all 2^21 strings of three ASCII bytes, only the marks must be found. The long form tries
// all 2^24 strings of three bytes.
func TestFindMarkFindsNothingElse(t *testing.T) {
	fuzztest.WithoutRace(t)
	b := bytes.Repeat([]byte("."), findStep+2)
	is := map[string]bool{}
	for _, mark := range markStrings {
		is[mark] = true
	}
	bits := fuzztest.LongOr(8, 7) // of a byte
	for i := range 1 << (3 * bits) {
		b[8], b[9], b[10] = byte(i>>(2*bits)), byte(i>>bits&(1<<bits-1)), byte(i&(1<<bits-1))
		search := NewSearch(b, nil)
		at, _ := search.Next(0)
		if want := is[string(b[8:11])]; want != (at == 8) || !want && at != len(b) {
			t.Fatalf("%q is found at %d", b[8:11], at)
		}
	}
}

// The vector search counts line ends in counters of one byte, which must not overflow in a long
// block.
func TestFindMarkCountsLongBlocks(t *testing.T) {
	for _, n := range []int{126, 127, 128, 254, 255, 256, 600} {
		for _, line := range []string{"\n", "a\n", "a line\n"} {
			b := bytes.Repeat([]byte(line), n*findStep/len(line))
			checkFindMark(t, b)
			checkFindMark(t, append(b, "\n0x"...))
		}
	}
}

func TestFindMarkOfRandomBytes(t *testing.T) {
	fuzztest.WithoutRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := strings.Join(markStrings, "") + "\n\n\nab9\x80\xb0\xf8"
	for range fuzztest.LongOr(200000, 10000) {
		b := make([]byte, r.IntN(300))
		few := alphabet[r.IntN(len(alphabet)):] // so that marks are not too near to each other
		for i := range b {
			b[i] = few[r.IntN(len(few))]
		}
		checkFindMark(t, b)
	}
}

func FuzzFindMark(f *testing.F) {
	for _, mark := range markStrings {
		f.Add([]byte(strings.Repeat("a line\n", 20)+mark), byte(0))
	}
	f.Add([]byte("0x"), byte(200))
	f.Fuzz(func(t *testing.T, b []byte, before byte) {
		defer fuzztest.Watch(t, b)()
		if len(b) < 4<<10 { // each mark is searched from the one before it
			checkFindMark(t, append(bytes.Repeat([]byte{'.'}, int(before)), b...))
		}
	})
}

// Each mark must be found in a JSON string, with and without the escapes for HTML.
func TestEscapedMarksAreFound(t *testing.T) {
	for _, mark := range append([]string{"0x"}, markStrings...) {
		if mark == "\n0x" {
			mark = "a\n0x"
		}
		for _, html := range []bool{false, true} {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(html)
			if err := e.Encode(map[string]string{"log": mark + "12"}); err != nil {
				t.Fatal(err)
			}
			if at, _ := FindEscaped(b.Bytes()); at == b.Len() {
				t.Errorf("%q in %s is not found", mark, b.Bytes())
			}
		}
	}
}
