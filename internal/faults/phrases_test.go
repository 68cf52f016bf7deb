package faults

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A search for all phrases must find each phrase at the offsets at which a search for this phrase
// alone finds it.
func TestPhrasesAreFoundTogether(t *testing.T) {
	texts := []string{"Oops", "BUG: KASAN: ", "BUG: ", "free(): ", "Oops: 0", "ops: 0002"}
	p := newPhrases(texts)
	parts := append([]string{"O", "BUG", ": ", "\n", "2", "free", "\xff"}, texts...)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var b strings.Builder
		for range r.IntN(8) {
			part := parts[r.IntN(len(parts))]
			b.WriteString(part[:r.IntN(len(part)+1)])
			b.WriteString(parts[r.IntN(len(parts))])
		}
		s := b.String()
		from := 0
		for at := range len(s) {
			var want uint64
			for i, text := range texts {
				if strings.HasPrefix(s[at:], text) {
					want |= 1 << i
				}
			}
			if want == 0 {
				continue
			}
			if got, set := p.next([]byte(s), from); got != at || set != want {
				t.Fatalf("%q from %d: got %b at %d, want %b at %d", s, from, set, got, want, at)
			}
			from = at + 1
		}
		if at, set := p.next([]byte(s), from); at != len(s) || set != 0 {
			t.Fatalf("%q from %d: got %b at %d, want none", s, from, set, at)
		}
	}
}

// A table must have at most 64 texts, one for each bit of a set, and must find each of its texts.
func TestTablesOfPhrasesHaveAllTexts(t *testing.T) {
	for _, p := range []*phrases{crashParts(), rolePhrases()} {
		if len(p.texts) > 64 {
			t.Errorf("%d texts", len(p.texts))
		}
		for i, text := range p.texts {
			if at, set := p.next([]byte("- "+text), 0); at > 2 || set>>i&1 == 0 && at == 2 {
				t.Errorf("%q: got %b at %d", text, set, at)
			}
		}
	}
}

// A crash message must be found if at most maxMessageLines lines separate it from the backtrace,
// and must not be found otherwise.
func TestCrashMessagesAreNear(t *testing.T) {
	for n := range 2 * maxMessageLines {
		lines := "a line\n" + "PSIGSEGV\nOops\n" + strings.Repeat("r0 0\n", n)
		x, ok := crashIn([]byte(lines))
		if want := n <= maxMessageLines; ok != want || ok && x.Kind != "oops" {
			t.Errorf("%d lines: got %v, %q", n, ok, x.Kind)
		}
	}
}
