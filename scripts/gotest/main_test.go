package main

import (
	"strings"
	"testing"
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

func TestOnlyTheFuzzersOwnDeadlineIsTriedAgain(t *testing.T) {
	tests := []struct {
		out  string
		want bool
	}{
		{"fuzz: elapsed: 5s, execs: 79861\n--- FAIL: FuzzA (5.02s)\n    context deadline exceeded\nFAIL\n", true},
		{"--- FAIL: FuzzA (5.02s)\n    a_test.go:1: context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n", false},
		{"--- FAIL: FuzzA (0.10s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n", false},
	}
	for _, tt := range tests {
		if got := endedBadly(tt.out); got != tt.want {
			t.Errorf("got %v, want %v for:\n%s", got, tt.want, tt.out)
		}
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
