package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// runOf returns the findings of processes. Each string is a process, with a word KIND:FUNCTION for
// each finding. The function ? is an own frame without a name; without a function, there is no
// frame. The word /cut marks a report without an end.
func runOf(t *testing.T, processes ...string) *findings.Collection {
	t.Helper()
	own, err := findings.NewOwn(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := findings.New(report.NewBudget(1<<20, nil))
	id, err := buildid.Parse([]byte("abcd"))
	if err != nil {
		t.Fatal(err)
	}
	for i, words := range processes {
		n := all.Begin(findings.Process{
			Input: "a.xml", Source: findings.FromValgrind, Tool: "memcheck", Command: []string{"./a"}, PID: fmt.Sprint(i + 1),
			Complete: !strings.Contains(words, "/cut"),
		})
		for word := range strings.FieldsSeq(words) {
			kind, name, ok := strings.Cut(word, ":")
			x := &findings.Finding{Source: findings.FromValgrind, Tool: "memcheck", Kind: kind}
			f := &findings.TraceFrame{Object: "/opt/a", ID: id, Offset: 0x10}
			if name != "?" {
				f.Frame = symbolize.Frame{Func: name, Linkage: name, File: name + ".c", Line: uint32(10 * (i + 1)), HasLine: true}
			}
			libc := &findings.TraceFrame{Object: "/lib/libc.so.6", Frame: symbolize.Frame{Func: "malloc", Linkage: "malloc"}}
			if ok && name != "" {
				x.Traces = []findings.Trace{{Frames: []*findings.TraceFrame{libc, f}}}
			}
			if word == "/cut" {
				continue
			}
			x.Identify(own)
			all.Add(n, x, 1)
		}
	}
	return all
}

// place returns the file and line of a finding.
func place(x *findings.Finding) string {
	if f := x.Place(); f != nil && f.HasLine {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return ""
}

func noFile(*findings.Finding) string { return "" }

// A gate must fail for new fingerprints, and for all that may hide a new fingerprint.
func TestReasons(t *testing.T) {
	const none = "new 0, gone 0, same "
	for name, test := range map[string]struct {
		before, now []string
		until       string // date of all entries of the baseline
		kinds       string
		empty       []string
		want        []string // the changes, and the reasons
	}{
		"equal":                     {before: []string{"R:f W:g"}, now: []string{"W:g R:f"}, want: []string{none + "2"}},
		"more often, other lines":   {before: []string{"R:f"}, now: []string{"", "R:f R:f", "R:f"}, want: []string{none + "1"}},
		"new":                       {before: []string{"R:f"}, now: []string{"R:f R:g"}, want: []string{"new 1, gone 0, same 1", "1 finding is new: R in g, g.c:10"}},
		"gone":                      {before: []string{"R:f R:g"}, now: []string{"R:g"}, want: []string{"new 0, gone 1, same 1"}},
		"another kind":              {before: []string{"R:f"}, now: []string{"W:f"}, want: []string{"new 1, gone 1, same 0", "1 finding is new: W in f, f.c:10"}},
		"several":                   {now: []string{"R:a R:b R:c R:d R:e"}, want: []string{"new 5, gone 0, same 0", "5 findings are new: R in a, a.c:10; R in b, b.c:10; R in c, c.c:10; and 2 more"}},
		"of other kinds":            {now: []string{"Leak_StillReachable:f Leak_IndirectlyLost:f"}, want: []string{"new 2, gone 0, same 0"}},
		"all kinds":                 {now: []string{"Leak_StillReachable:f"}, kinds: "all", want: []string{"new 1, gone 0, same 0", "1 finding is new: Leak_StillReachable in f, f.c:10"}},
		"no kind":                   {now: []string{"R:f /cut"}, kinds: "none", empty: []string{"x"}, want: []string{"new 1, gone 0, same 0"}},
		"accepted until today":      {before: []string{"R:f"}, now: []string{"R:f"}, until: "2027-03-01", want: []string{none + "1"}},
		"accepted until yesterday":  {before: []string{"R:f"}, now: []string{"R:f"}, until: "2027-02-28", want: []string{"new 1, gone 0, same 0", "the baseline no longer accepts 1 finding: R in f, f.c:10"}},
		"gone before its day":       {before: []string{"R:f"}, now: []string{""}, until: "2027-02-28", want: []string{"new 0, gone 1, same 0"}},
		"without a name":            {before: []string{"R:?"}, now: []string{"R:?"}, want: []string{"new 1, gone 0, same 0", "1 finding counts as new, since no frame of the program has a name: R; find the debug file of /opt/a (BuildId: abcd)"}},
		"without a frame":           {now: []string{"R W"}, want: []string{"new 2, gone 0, same 0", "2 findings count as new, since no frame of the program has a name: R; W; find the debug file of the program"}},
		"without a name, harmless":  {now: []string{"Leak_StillReachable:?"}, want: []string{"new 1, gone 0, same 0"}},
		"cut":                       {before: []string{"R:f"}, now: []string{"R:f", "R:f /cut"}, want: []string{none + "1", "1 report cut off, so errors may be missing: a.xml, ./a (PID 2)"}},
		"cut before the change":     {before: []string{"R:f /cut"}, now: []string{"R:f"}, want: []string{none + "1"}},
		"an input without a report": {empty: []string{"b.xml"}, want: []string{none + "0", "1 input without a report: b.xml"}},
	} {
		now := runOf(t, test.now...)
		before := Entries(runOf(t, test.before...), noFile)
		for i := range before {
			if test.until != "" {
				before[i].Until, _ = time.Parse(time.DateOnly, test.until)
			}
		}
		var kinds Kinds
		if test.kinds != "" {
			var err error
			if kinds, _, err = ParseKinds(test.kinds); err != nil {
				t.Fatal(err)
			}
		}
		today := time.Date(2027, 3, 1, 23, 59, 0, 0, time.FixedZone("", -12*3600))
		c := Compare(now, before, today)
		run := Run{Collection: now, Against: c, Empty: test.empty, Place: place}
		got := append([]string{fmt.Sprintf("new %d, gone %d, same %d", len(c.New), len(c.Gone), c.Same)}, run.Reasons(&kinds)...)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without a baseline, each finding of the default kinds must be a reason.
func TestReasonsWithoutABaseline(t *testing.T) {
	var kinds Kinds
	run := Run{Collection: runOf(t, "R:f R:? Leak_StillReachable:f", "R:f"), Place: place}
	want := []string{"2 findings: R in f, f.c:10; R"}
	if diff := cmp.Diff(want, run.Reasons(&kinds)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run.Left = 2
	want = append(want, "2 findings left out for lack of memory: raise --max-memory")
	if diff := cmp.Diff(want, run.Reasons(&kinds)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each finding must have the state of its fingerprint.
func TestStates(t *testing.T) {
	now := runOf(t, "R:f R:f R:g R:?")
	c := Compare(now, Entries(runOf(t, "R:f"), noFile), time.Now())
	var got []State
	for _, x := range now.All() {
		got = append(got, c.State(x))
	}
	if diff := cmp.Diff([]State{Unchanged, Unchanged, New, New}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c = nil
	if s := c.State(now.All()[0]); s != NotCompared {
		t.Errorf("without a comparison: %v", s)
	}
}
