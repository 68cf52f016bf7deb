package dialect

import "testing"

// The kinds of an anchor's grammars must fit into one word, since a further kind would match
// nothing. Each grammar of every dialect, including dialects on demand, must be in exactly one
// kind.
func TestTheGrammarsOfAnAnchorFitTheTables(t *testing.T) {
	var names []string
	for _, d := range All() {
		names = append(names, d.Name)
	}
	tables := tablesOf(names)
	for a := range tables.of {
		f := &tables.of[a]
		if kinds, grammars := len(f.kinds), len(f.grammars); kinds > maxKinds || grammars > maxGrammars {
			t.Errorf("%q has %d kinds of %d grammars, at most %d of %d", anchorText[a], kinds, grammars, maxKinds, maxGrammars)
		}
		seen := make(map[int]int)
		for k := range f.kinds {
			for i := range f.grammars {
				if f.kinds[k].of[i/64]>>(i%64)&1 == 0 {
					continue
				}
				if seen[i]++; !f.grammars[i].acceptsAs(f.kinds[k].first) {
					t.Errorf("grammar %d at %q accepts other bytes than its kind", i, anchorText[a])
				}
			}
		}
		for i := range f.grammars {
			if seen[i] != 1 {
				t.Errorf("grammar %d at %q is in %d kinds", i, anchorText[a], seen[i])
			}
		}
	}
	if n := len(tables.of[anchor0x].grammars); n < 32 {
		t.Errorf("anchor 0x has only %d grammars", n)
	}
}

// Grammars are tried in the order of their rows, even if grammars of other kinds are between them.
func TestGrammarsAreTriedInTheOrderOfTheirRows(t *testing.T) {
	var tried []int
	var f fits
	for i := range 70 {
		f.add(&grammar{direct: string(rune('a' + i%3)), match: func(*Reader, *Line, int) bool {
			tried = append(tried, i)
			return false
		}})
	}
	r := NewReader(nil)
	r.tables = &tables{}
	r.of[anchor0x] = f
	r.matchAt(new(Line), anchor0x, 0, 0b101)
	want := 0
	for _, i := range tried {
		for want%3 == 1 {
			want++
		}
		if i != want {
			t.Fatalf("grammar %d is tried, want %d", i, want)
		}
		want++
	}
	if len(tried) != 47 {
		t.Errorf("%d grammars are tried, want 47 of 70", len(tried))
	}
}
