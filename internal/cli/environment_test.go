package cli

import "testing"

func TestVariablesOfTheProgramAreInTheEnvironment(t *testing.T) {
	p := Program[struct{}]{Name: "symfilter"}
	for _, test := range []struct {
		environment []string
		want        bool
	}{
		{nil, false},
		{[]string{"PATH=/bin", "HOME=/home/symfilter", "=x", ""}, false},
		{[]string{"SYMFILTER=1", "SYMFILTERQUIET=1"}, false},
		{[]string{"PATH=/bin", "SYMFILTER_QUIET=1"}, true},
		{[]string{"Symfilter_Quiet=1"}, true}, // Windows ignores case
	} {
		if got := p.InEnvironment(test.environment); got != test.want {
			t.Errorf("%q: got %v", test.environment, got)
		}
	}
}
