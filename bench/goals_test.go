//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGoals(t *testing.T) {
	tests := []struct {
		text string
		want []goal
		err  string
	}{
		{text: ""},
		{text: "wall 0.25", want: []goal{{"wall", 0.25, "wall 0.25"}}},
		{text: "96 MiB", want: []goal{{"MiB", 96, "96 MiB"}}},
		{text: "wall 0.25, peak 0.35, file 2.0", want: []goal{{"wall", 0.25, "wall 0.25"}, {"peak", 0.35, "peak 0.35"}, {"file", 2, "file 2.0"}}},
		{text: "CPU 1.5, 30 MiB", want: []goal{{"CPU", 1.5, "CPU 1.5"}, {"MiB", 30, "30 MiB"}}},
		{text: "wall", err: `goal "wall": want a figure and a number`},
		{text: "wall fast", err: `goal "wall fast": want a figure and a number`},
		{text: "wall 0", err: `goal "wall 0": want a figure and a number`},
		{text: "wall -1", err: `goal "wall -1": want a figure and a number`},
		{text: "wall NaN", err: `goal "wall NaN": want a figure and a number`},
		{text: "wall Inf", err: `goal "wall Inf": want a figure and a number`},
		{text: "MiB 30", err: `goal "MiB 30": want a figure and a number`},
		{text: "cpu 1.5", err: `goal "cpu 1.5": want wall, CPU, peak, file or MiB`},
		{text: "wall 0.25,peak 0.35", err: `goal "wall 0.25,peak 0.35": want a figure and a number`},
		{text: "wall 0.25, ", err: `goal "": want a figure and a number`},
	}
	for _, tt := range tests {
		got, err := parseGoals(tt.text)
		if text := fmt.Sprint(err); tt.err != "" && !strings.HasPrefix(text, tt.err) || tt.err == "" && err != nil {
			t.Errorf("%q: error %v, want %q", tt.text, err, tt.err)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(goal{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestGoalsOfAnUntunedBinaryAreTheRatiosOfTheTunedOne(t *testing.T) {
	w := workload{name: "hot, libjvm", like: "hot, radosgw"}
	measured := []result{{Workload: "hot, vmlinux", Wall: 9, CPU: 9, Peak: 9}, {Workload: "hot, radosgw", Wall: 0.1, CPU: 0.02, Peak: 0.3333}}
	want := []goal{{"wall", 0.11, "wall 0.110"}, {"CPU", 0.022, "CPU 0.022"}, {"peak", 0.367, "peak 0.367"}}
	got, err := goalsOf(w, measured)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(goal{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := goalsOf(w, measured[:1]); len(got) > 0 || err != nil {
		t.Errorf("without a row of the tuned binary: got %v, %v", got, err)
	}
}

// Whether a goal is met must be decided by the rounded figure that the table prints.
func TestGoalsAreMet(t *testing.T) {
	const mib = 1 << 20
	row := func(goals string, mine, other cost) []bool {
		var r report
		err := r.add(workload{name: "a", goals: goals}, "b", side{Median: other, FileBytes: 100}, side{Median: mine, FileBytes: 173})
		if err != nil {
			t.Fatal(err)
		}
		var met []bool
		for _, g := range r.Results[0].Goals {
			met = append(met, g.Met)
		}
		return met
	}
	mine, other := cost{Wall: 250_400, CPU: 250_600, Peak: 30 * mib}, cost{Wall: 1_000_000, CPU: 1_000_000, Peak: 100 * mib}
	tests := []struct {
		goals string
		want  []bool
	}{
		{"", nil},
		{"wall 0.25", []bool{true}}, // 0.2504 is printed as 0.250
		{"CPU 0.25", []bool{false}}, // 0.2506 as 0.251
		{"wall 0.249, wall 0.26", []bool{false, true}},
		{"peak 0.3, peak 0.29, 30 MiB, 29 MiB", []bool{true, false, true, false}},
		{"file 1.73, file 1.7", []bool{true, false}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, row(tt.goals, mine, other)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.goals, diff)
		}
	}
}
