package callgrind

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/stacks"
)

// large matches numbers whose sum may exceed int64: the result then depends on the order.
var large = regexp.MustCompile(`[0-9a-fA-F]{15}`)

// signed matches inputs that may have negative costs or relative positions.
var signed = regexp.MustCompile(`[ \t]-`)

// odd matches characters that are escaped in the names of events.
var odd = regexp.MustCompile(`[^ -~\n\t\r]`)

// FuzzCallgrind checks that no profile makes the reader panic, hang or exceed its memory, and that
// the size of the written blocks does not change the output. The costs of functions must add up to
// the costs of lines, and no function may cost more than the total. The parts of a profile that is
// printed again must keep their costs.
func FuzzCallgrind(f *testing.F) {
	for _, dir := range []string{"records", "reports"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			f.Fatalf("%d seeds, %v", len(names), err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(a.Files[0].Data)
		}
	}
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, profile []byte) {
		defer fuzztest.Watch(t, profile)()
		whole := records(profile, max(1, len(profile)))
		if in := records(profile, 7); in != whole {
			t.Errorf("in blocks of 7 bytes:\n%s\nwhole:\n%s", in, whole)
		}
		o := o
		o.Output = JSON
		parts := checkSums(t, printed(t, profile, 64, false, o), large.Match(profile), signed.Match(profile))
		o.Output = Profile
		again := printed(t, profile, 1<<20, false, o)
		o.Output = JSON
		after := checkSums(t, printed(t, []byte(again), 1<<20, false, o), large.Match(profile), signed.Match(profile))
		if d := cmp.Diff(parts, after); d != "" && !large.Match(profile) && !odd.Match(profile) {
			t.Errorf("parts, printed again (-before, +after):\n%s\n%s", d, again)
		}
		o.Output, o.Tree, o.Inclusive = Table, Callers|Calling, true
		for line := range strings.Lines(printed(t, profile, 1<<20, false, o)) {
			if strings.HasPrefix(line, "! ") {
				break // diagnostics are escaped by their receiver
			}
			if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
				t.Errorf("a control character in %q", line)
			}
		}
		printed(t, profile, 100, true, o)
		fuzztest.Growth(t, profile, func(profile []byte) { printed(t, profile, 1<<20, false, o) })
	})
}

// checkSums checks the JSON of a profile for consistency, and returns the costs of its parts as the
// sums of their lines. With negative costs, a part may exceed the whole.
func checkSums(t *testing.T, out string, large, signed bool) (parts []map[string]int64) {
	t.Helper()
	var lines, functions map[string]int64
	var total map[string]int64
	var inclusive []map[string]int64
	sum := func(into *map[string]int64, costs map[string]int64) {
		if *into == nil {
			*into = map[string]int64{}
		}
		for e, n := range costs {
			(*into)[e] = stacks.Plus((*into)[e], n)
		}
	}
	events := 0
	for line := range strings.Lines(out) {
		if line[0] == '!' || strings.HasPrefix(line, "error:") {
			continue
		}
		var r struct {
			Record          string
			Lines, Total    map[string]int64
			Self, Inclusive map[string]int64
			Events          []struct{ Name, Formula string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch r.Record {
		case "part":
			sum(&lines, r.Lines)
			for e, n := range r.Lines { // an event without costs may be missing
				if n == 0 {
					delete(r.Lines, e)
				}
			}
			if len(r.Lines) > 0 {
				parts = append(parts, r.Lines)
			}
		case "profile":
			total = r.Total
			events = len(r.Events)
		case "function":
			sum(&functions, r.Self)
			inclusive = append(inclusive, r.Inclusive)
		}
	}
	if large || events == 0 || slices.ContainsFunc(inclusive, func(c map[string]int64) bool { return len(c) == 0 }) {
		return parts
	}
	for e, n := range lines {
		if got := functions[e]; got != n {
			t.Errorf("functions cost %d %s, lines %d", got, e, n)
		}
		for _, c := range inclusive {
			if !signed && c[e] > max(total[e], functions[e], n) {
				t.Errorf("a function costs %d %s, all %d", c[e], e, total[e])
			}
		}
	}
	return parts
}
