package dialect

import "testing"

// The grammars of an anchor that fit are a set in one word. With one more, the last would match
// nothing: then two of the same dialect become one, by anyOf.
func TestTheGrammarsOfAnAnchorFitIntoAWord(t *testing.T) {
	of := make(map[anchor]int)
	for _, g := range allGrammars() {
		of[g.anchor]++
	}
	for a, n := range of {
		if n > 64 {
			t.Errorf("anchor %d has %d grammars, at most 64", a, n)
		}
	}
	if of[anchor0x] < 32 {
		t.Errorf("anchor 0x has only %d grammars", of[anchor0x])
	}
}
