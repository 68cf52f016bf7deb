package demangle

import (
	"strings"
	"testing"
)

func TestNamesBeyondTheBoundsAreShownAsTheyAre(t *testing.T) {
	shows := func(string) (string, bool) { return "shown", true }
	for _, tt := range []struct {
		what, name string
		show       func(string) (string, bool)
		want       string
	}{
		{"a name", "_Z1fv", shows, "shown"},
		{"the longest", strings.Repeat("x", MaxMangled), shows, "shown"},
		{"one that is longer", strings.Repeat("x", MaxMangled+1), shows, strings.Repeat("x", MaxMangled+1)},
		{"not mangled", "main", func(string) (string, bool) { return "", false }, "main"},
		{"too many steps", "_Z1fv", func(string) (string, bool) { panic(TooManySteps) }, "_Z1fv"},
	} {
		if got := Bounded(tt.name, tt.show); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
	}
}
