package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/symbolize"
)

// changedRun returns a run compared with a baseline. It has hostile names, and 10 processes with a
// finding in an unrolled loop.
func changedRun(t *testing.T) *Result {
	t.Helper()
	own, err := findings.NewOwn(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := findings.New(report.NewBudget(1<<20, nil))
	known := strings.Repeat("0", 32)
	for i := range 10 {
		n := all.Begin(findings.Process{Input: "a\x1b.xml", Source: findings.FromValgrind, Tool: "memcheck", Command: []string{"./a"}, PID: fmt.Sprint(i + 1), Complete: true})
		for line := uint32(12); line < 18; line++ {
			x := &findings.Finding{
				Source: findings.FromValgrind, Tool: "memcheck", Kind: "Leak_DefinitelyLost", Message: "8 bytes\x07 are lost", Bytes: 8, Blocks: 1, Detail: []string{"more"},
				Traces: []findings.Trace{{Frames: []*findings.TraceFrame{
					{Frame: symbolize.Frame{Func: "malloc", Linkage: "malloc"}, Object: "/lib/libc.so.6", Offset: 0x12},
					{Frame: symbolize.Frame{Func: "f<\n>()", Linkage: "_Zf", File: "/src/lib/f.cc", Line: line, Column: 3, HasLine: true}, Object: "/opt/a", Address: 0x1},
					{Object: "/opt/b", Address: 0x2},
				}}},
			}
			x.Identify(own)
			all.Add(n, x, uint64(i+1))
		}
	}
	r := &Result{Collection: all, Base: "/src"}
	r.Changes = gate.Compare(all, []gate.Entry{
		{Fingerprint: known, Kind: "InvalidRead", Function: "g(int)", File: "g.cc", Program: "./b"},
		{Fingerprint: all.All()[0].Fingerprint, Until: time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)},
	}, time.Date(2020, 1, 3, 0, 0, 0, 0, time.UTC))
	return r
}

func TestChangesAsText(t *testing.T) {
	var b bytes.Buffer
	if err := Changes(&b, changedRun(t)); err != nil {
		t.Fatal(err)
	}
	want := `new 1, gone 1, same 0

8 bytes\x07 are lost [memcheck/Leak_DefinitelyLost]
    #0 malloc (libc.so.6+0x12)
    #1 f<\x0a>() lib/f.cc:12:3 (a)
    #2 0x2 (b)
 more
 The baseline accepted this finding until 2020-01-02.
 5 more with this fingerprint: lib/f.cc:13, lib/f.cc:14, lib/f.cc:15, lib/f.cc:16, ...
 330 times in 10 processes: ./a (PID 1) 6 times, ./a (PID 2) 12 times, ./a (PID 3) 18 times, ./a (PID 4) 24 times, ./a (PID 5) 30 times, ./a (PID 6) 36 times, ./a (PID 7) 42 times, ./a (PID 8) 48 times and 2 more
 fingerprint FINGERPRINT

gone: InvalidRead in g(int), g.cc (./b)
`
	want = strings.ReplaceAll(want, "FINGERPRINT", changedRun(t).All()[0].Fingerprint)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestChangesAsJSON(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("changes.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r := changedRun(t)
	if err := ChangesJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	records := make(map[string]int)
	for line := range strings.Lines(b.String()) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		var o struct{ Record, State, Until string }
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		records[strings.TrimSpace(o.Record+" "+o.State+" "+o.Until)]++
	}
	want := map[string]int{"changes": 1, "finding new 2020-01-02": 6, "gone": 1}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
