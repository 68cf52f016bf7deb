package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestReportCounts(t *testing.T) {
	const start = `{"Action":"start","Package":"p"}` + "\n"
	tests := []struct {
		name, in string
		want     counts
	}{
		{"nothing", "", counts{}},
		{"one of each", start +
			`{"Action":"output","Package":"p","Test":"A","Output":"said\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"fail","Package":"p"}
`, counts{1, 1, 1}},
		{"a package that does not build", `{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p"}
`, counts{0, 1, 0}},
		{"a package that dies outside of its tests", start + `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}
`, counts{1, 1, 0}},
		{"a package without tests", start + `{"Action":"skip","Package":"p"}
`, counts{}},
		{"the go command is killed", `{"Action":"pass","Package":"p","Test":"A"}
`, counts{1, 1, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w strings.Builder
			if got := report(strings.NewReader(tt.in), &w); got != tt.want {
				t.Errorf("got %+v, want %+v; it printed:\n%s", got, tt.want, w.String())
			}
		})
	}
}

func TestReportShowsTheOutputOfFailuresAndSkipsOnly(t *testing.T) {
	var w strings.Builder
	report(strings.NewReader(`{"Action":"output","Package":"p","Test":"A","Output":"a good test\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"a bad test\n"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"no compiler\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"fail","Package":"p","Elapsed":1.5}
`), &w)
	const want = "a bad test\nno compiler\nfail p: 1 passed, 1 failed, 1 skipped in 1.5 s\n"
	if got := w.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestReportShowsWhatADyingTestSaid(t *testing.T) {
	var w strings.Builder
	report(strings.NewReader(`{"Action":"output","Package":"p","Test":"A","Output":"panic: no\n"}
{"Action":"output","Package":"p","Output":"FAIL p\n"}
{"Action":"fail","Package":"p","Elapsed":1.5}
`), &w)
	const want = "panic: no\nFAIL p\nfail p: 0 passed, 1 failed, 0 skipped in 1.5 s\n"
	if got := w.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRunsOfFuzzTargetsAreJudged(t *testing.T) {
	const tried = "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nfuzz: elapsed: 2s, execs: 79861 (39930/sec), new interesting: 3 (total: 12)\n"
	const seeds = "fuzz: elapsed: 2s, gathering baseline coverage: 243/957 completed\n"
	const deadline = "--- FAIL: FuzzA (2.02s)\n    context deadline exceeded\nFAIL\n"
	exit := errors.New("exit status 1")
	tests := []struct {
		name             string
		text, unfinished string
		err              error
		want             verdict
		why              string
	}{
		{"nothing found", tried + "PASS\n", "", nil, passed, ""},
		{"the fuzzer's own deadline", tried + deadline, "", exit, passed, ""},
		{"the fuzzer's own deadline, without seeds", "warning: starting with empty corpus\n" + tried + deadline, "", exit, passed, ""},
		{"the fuzzer's own deadline, only seeds", seeds + deadline, "", exit, again, "no input was tried"},
		{"only seeds", seeds + "PASS\n", "", nil, again, "no input was tried"},
		{"an input that fails with this error", tried + "--- FAIL: FuzzA (2.02s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:1: context deadline exceeded\n" +
			"    \n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n", "", exit, failed, "exit status 1"},
		{"an input that fails with this error alone", tried + "--- FAIL: FuzzA (2.02s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n", "", exit, failed, "exit status 1"},
		{"an input that is being minimized", "fuzz: minimizing 9-byte failing input file\n" + tried + deadline, "", exit, failed, "exit status 1"},
		{"a seed that fails", "failure while testing seed corpus entry: FuzzA/1\n" + tried + deadline, "", exit, failed, "exit status 1"},
		{"a process that ends", tried + "--- FAIL: FuzzA (0.10s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n", "", exit, failed, "exit status 1"},
		{"a panic", tried + "panic: no\n", "", exit, failed, "exit status 1"},
		{"an input that was given up after the end", tried + "PASS\n", "an input takes more than 2s of work: \"x\"\n", nil, failed, `an input takes more than 2s of work: "x"`},
		{"an input that was killed after the end", tried + "PASS\n", "an input was not finished: \"x\"\n", nil, again, `an input was not finished: "x"`},
		{"an input that was killed, and the fuzzer's own deadline", tried + deadline, "an input was not finished: \"x\"\n", exit, again, `an input was not finished: "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := judge(output{tt.text, tt.unfinished}, tt.err)
			if got != tt.want || why != tt.why {
				t.Errorf("got %v, %q, want %v, %q", got, why, tt.want, tt.why)
			}
		})
	}
	if unfinishedVariable != fuzztest.Unfinished {
		t.Errorf("the variable is %s here, %s in fuzztest", unfinishedVariable, fuzztest.Unfinished)
	}
}

func TestExecutions(t *testing.T) {
	for out, want := range map[string]string{
		"fuzz: elapsed: 2s, gathering baseline coverage: 243/957 completed\nPASS\n":                             "",
		"fuzz: elapsed: 1s, execs: 9 (9/sec), new\nfuzz: elapsed: 2s, execs: 222 (0/sec), new interesting: 0\n": "execs: 222",
	} {
		if got := executions(out); got != want {
			t.Errorf("got %q, want %q for:\n%s", got, want, out)
		}
	}
}
