package dialect

import "testing"

// The comparison by hand finds each anchor, and nothing that is none.
func TestAnchorsAreFoundAtTheirLastByte(t *testing.T) {
	for a, text := range anchorText {
		line := []byte("  " + text)
		got, at, ok := anchorTo(line, len(line)-1)
		if got != anchor(a) || at != 2 || !ok || !ends[line[len(line)-1]] {
			t.Errorf("%q: got anchor %d at %d, %t", text, got, at, ok)
		}
		for i := range text {
			other := []byte("  " + text)
			other[2+i] = '~'
			if _, at, ok := anchorTo(other, len(other)-1); ok && i < len(text)-1 {
				t.Errorf("%q has an anchor at %d", other, at)
			}
			if i == len(text)-1 {
				continue
			}
			if _, _, ok := anchorTo([]byte(text[i+1:]), len(text)-i-2); ok {
				t.Errorf("%q has an anchor", text[i+1:])
			}
		}
	}
}

// Each grammar has a bit of the tables.
func TestGrammarsFitTheTables(t *testing.T) {
	for a, all := range allTables().grammars {
		if n := len(all); n > 64 {
			t.Errorf("%d grammars at %q, want at most 64", n, anchorText[a])
		}
	}
}
