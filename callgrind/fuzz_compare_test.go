package callgrind

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// FuzzComparison checks that no two profiles and no limit make a comparison panic, hang or exceed
// its memory. If before and after are exchanged, the changes of functions must have the opposite
// sign.
func FuzzComparison(f *testing.F) {
	for _, dir := range []string{"compared", "joined", "reports"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			f.Fatalf("%d seeds, %v", len(names), err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(a.Files[0].Data, a.Files[1].Data, "main.self:Ir=+1.5%", "s/a(.)/\\1/g")
		}
	}
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, before, after []byte, limit, substitution string) {
		defer fuzztest.Watch(t, append(bytes.Clone(before), after...))()
		o := o
		if l, err := ParseLimit(limit); err == nil {
			o.Limits = []Limit{l}
		}
		if s, err := ParseSubstitution(substitution); err == nil {
			o.FunctionNames, o.FileNames = []Substitution{s}, []Substitution{s}
		}
		compare := func(before, after []byte, output Output) string {
			o := o
			o.Output, o.Inclusive, o.Threshold, o.Source = output, true, 100, true
			var out bytes.Buffer
			c := NewComparison(&out, o)
			for _, side := range []struct {
				r    *Report
				text []byte
			}{{c.Before, before}, {c.After, after}} {
				if err := side.r.Begin(Input{Label: "input"}); err != nil {
					t.Fatal(err)
				}
				if _, err := side.r.Write(side.text); err != nil {
					t.Fatal(err)
				}
			}
			c.Close() // Close may fail: the profiles need not have a common event
			return out.String()
		}
		if large.Match(before) || large.Match(after) {
			compare(before, after, JSON)
			return
		}
		there := changesIn(t, compare(before, after, JSON))
		back := changesIn(t, compare(after, before, JSON))
		for _, all := range back {
			for e := range all {
				all[e] = -all[e]
			}
		}
		if d := cmp.Diff(there, back); d != "" && !odd.Match(before) && !odd.Match(after) {
			t.Errorf("changes, and those of the other way (-there, +back):\n%s", d)
		}
		for line := range strings.Lines(compare(before, after, Table)) {
			if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
				t.Errorf("a control character in %q", line)
			}
		}
		fuzztest.Growth(t, before, func(before []byte) { compare(before, after, JSON) })
	})
}

// changesIn returns the changes of own costs by function and event, without changes of 0.
func changesIn(t *testing.T, out string) map[string]map[string]int64 {
	t.Helper()
	all := map[string]map[string]int64{}
	for line := range strings.Lines(out) {
		var r struct {
			Record, Function, Object, File string
			Before, After                  struct{ Self map[string]int64 }
		}
		if strings.Contains(line, `"record":"limit"`) {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if r.Record != "change" {
			continue
		}
		change := map[string]int64{}
		for e, n := range r.After.Self {
			change[e] += n
		}
		for e, n := range r.Before.Self {
			change[e] -= n
		}
		for e, n := range change {
			if n == 0 {
				delete(change, e)
			}
		}
		if len(change) > 0 {
			key := r.Function
			for e, n := range all[key] { // functions of one name in several objects or files
				change[e] += n
			}
			all[key] = change
		}
	}
	return all
}
