package filter

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
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
