package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

func mustID(t *testing.T, digits string) buildid.ID {
	t.Helper()
	id, err := buildid.Parse([]byte(digits))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The counts of all inputs must be added up by module, and printed by module name.
func TestWhatStayedUnresolvedIsAddedUp(t *testing.T) {
	one, two := mustID(t, "aabb"), mustID(t, "ccdd")
	in := func(id buildid.ID, name string, n int64) symbolize.Unresolved {
		return symbolize.Unresolved{ID: id, Name: name, Frames: n}
	}
	for _, test := range []struct {
		name   string
		inputs []Counts
		want   string
	}{
		{"a log", []Counts{{Failed: 14, Asked: 22, Modules: []symbolize.Unresolved{in(two, "/lib/libc.so.6", 5), in(one, "/opt/inventory", 9)}}},
			"14 of 22 addresses stayed unresolved: inventory (9), libc.so.6 (5)"},
		{"two logs", []Counts{
			{Failed: 1, Asked: 2, Modules: []symbolize.Unresolved{in(one, "app", 1)}},
			{Failed: 3, Asked: 3, Modules: []symbolize.Unresolved{in(two, "libc", 2), in(one, "app", 1)}},
		}, "4 of 5 addresses stayed unresolved: app (2), libc (2)"},
		{"two builds of a module", []Counts{{Failed: 3, Asked: 3, Modules: []symbolize.Unresolved{in(one, "/a/app", 1), in(two, "/b/app", 2)}}},
			"3 of 3 addresses stayed unresolved: app (3)"},
		{"addresses in no module", []Counts{{Failed: 3, Asked: 9, Modules: []symbolize.Unresolved{in(one, "app", 1)}}},
			"3 of 9 addresses stayed unresolved: no module (2), app (1)"},
		{"a module without a name", []Counts{{Failed: 1, Asked: 1, Modules: []symbolize.Unresolved{in(one, "", 1)}}},
			"1 of 1 address stayed unresolved: aabb (1)"},
		{"a report, which counts what gets a name separately", []Counts{
			{Asked: 7},
			{Failed: 2, Asked: 2, Modules: []symbolize.Unresolved{in(one, "app", 2)}},
		}, "2 of 9 addresses stayed unresolved: app (2)"},
		{"many modules", []Counts{{Failed: 21, Asked: 21, Modules: []symbolize.Unresolved{
			in(one, "a", 1), in(one, "b", 2), in(one, "c", 3), in(one, "d", 4), in(one, "e", 5), in(one, "f", 6)}}},
			"21 of 21 addresses stayed unresolved: f (6), e (5), d (4), c (3), 2 more (3)"},
		{"a long name", []Counts{{Failed: 1, Asked: 1, Modules: []symbolize.Unresolved{in(one, strings.Repeat("x", 5000), 1)}}},
			"1 of 1 address stayed unresolved: " + strings.Repeat("x", 64) + "… (1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var all Sum
			for _, c := range test.inputs {
				all.Add(c)
			}
			if diff := cmp.Diff(test.want, all.All().String()); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// A Sum must keep few modules and few bytes of names, but lose no count.
func TestTalliesAreBounded(t *testing.T) {
	for _, test := range []struct {
		name    string
		length  int // bytes of a name
		modules int // modules that are kept
	}{
		{"many modules", 10, maxRemember},
		{"long names", 10000, maxNameBytes / 10000},
	} {
		t.Run(test.name, func(t *testing.T) {
			const n = 2 * maxRemember
			var all Sum
			for i := range n {
				all.Add(Counts{Failed: 1, Asked: 2, Modules: []symbolize.Unresolved{{Name: fmt.Sprintf("%0*d", test.length, i), Frames: 1}}})
			}
			got := all.All()
			if len(got.Modules) != test.modules || got.Failed != n || got.Asked != 2*n {
				t.Errorf("%d modules, %d of %d; want %d, %d of %d", len(got.Modules), got.Failed, got.Asked, test.modules, n, 2*n)
			}
			if _, outside := got.sorted(); outside != int64(n-test.modules) {
				t.Errorf("%d in modules that are not kept, want %d", outside, n-test.modules)
			}
		})
	}
}
