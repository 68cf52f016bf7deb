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
		{"a panic", "_Z1fv", func(string) (string, bool) { panic("internal error") }, "_Z1fv"},
	} {
		if got := Bounded(tt.name, tt.show); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
	}
}

func TestNamesAreAsGNUShowsThem(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN3app4PoolISt4pairIiiEE4growEi":                          "app::Pool<std::pair<int, int> >::grow(int)",
		"_ZN3app4workEi.isra.0":                                     "app::work(int) [clone .isra.0]",
		"_RNvC6_123foo3bar":                                         "123foo::bar",
		"_ZN3std28__rust_begin_short_backtrace17h0123456789abcdefE": "std::__rust_begin_short_backtrace",
		"_ZN23_$LT$T$u20$as$u20$U$GT$1f17h0123456789abcdefE":        "<T as U>::f",
		"_RNcNtC1a1B0":                                              "a::B",
		"_RNCNCNvC1a1b00":                                           "a::b::{closure#0}::{closure#0}",
		"_RNCNCNCNvC1a1b00s_0":                                      "a::b::{closure#0}::{closure#0}::{closure#1}",
		"main":                                                      "main",
		"_Z" + strings.Repeat("x", MaxMangled):                      "_Z" + strings.Repeat("x", MaxMangled),
	} {
		if got := GNU(name); got != want {
			t.Errorf("%.40s: got %.60q, want %.60q", name, got, want)
		}
	}
}
