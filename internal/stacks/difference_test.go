package stacks

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// changed returns two profiles whose functions have different numbers.
func changed() (before, after *Profile) {
	make := func(names string, costs map[string]int64, stacks ...string) *Profile {
		p := &Profile{Values: []ValueType{{"Ir", "count"}}}
		for name := range strings.SplitSeq(names, " ") {
			f := p.AddFunction(Function{Name: name})
			p.AddLocation(Location{Lines: []Line{{Function: f}}})
		}
		for _, s := range stacks {
			var stack []uint32
			for name := range strings.SplitSeq(s, " ") {
				stack = append(stack, uint32(1+strings.Index(names, name)/2))
			}
			p.AddSample(Sample{Stack: stack, Values: []int64{costs[s]}})
		}
		return p
	}
	before = make("a b c", map[string]int64{"a": 1, "b a": 5, "c b a": 7}, "a", "b a", "c b a")
	after = make("c d a", map[string]int64{"a": 3, "d a": 4, "c a": 7}, "a", "d a", "c a")
	return before, after
}

func TestDifferenceHasNegativeBase(t *testing.T) {
	var out bytes.Buffer
	if err := Difference(changed()).WritePprof(&out); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	got := map[string]int64{}
	for _, s := range p.Sample {
		name := ""
		for _, l := range s.Location {
			name += l.Line[0].Function.Name + " "
		}
		if s.DiffBaseSample() {
			name += "(base)"
		}
		got[name] += s.Value[0]
	}
	want := map[string]int64{"a ": 3, "d a ": 4, "c a ": 7, "a (base)": -1, "b a (base)": -5, "c b a (base)": -7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFoldedPairs(t *testing.T) {
	before, after := changed()
	var out strings.Builder
	if err := WriteFoldedPair(&out, before, after, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a 1 3\na;b 5 0\na;b;c 7 0\na;c 0 7\na;d 0 4\n", out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
