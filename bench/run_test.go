//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	// sorting the runs by one figure gives another order than sorting them by another figure
	runs := func(n int) []cost {
		all := []cost{{5, 10, 300}, {1, 50, 100}, {9, 20, 900}, {3, 40, 500}, {7, 30, 700}}
		return all[:n]
	}
	tests := []struct {
		runs []cost
		want cost
	}{
		{runs(1), cost{5, 10, 300}},
		{runs(2), cost{3, 30, 200}}, // of an even number, between the middle two
		{runs(3), cost{5, 20, 300}},
		{runs(4), cost{4, 30, 400}},
		{runs(5), cost{5, 30, 500}},
	}
	for _, tt := range tests {
		before := slices.Clone(tt.runs)
		if got := median(tt.runs); got != tt.want {
			t.Errorf("median of %d runs: got %v, want %v", len(tt.runs), got, tt.want)
		}
		if !slices.Equal(tt.runs, before) {
			t.Errorf("the order of the runs has changed: %v", tt.runs)
		}
	}
}

func TestRunsAreInterleaved(t *testing.T) {
	var order []string
	clock := time.Duration(0)
	measure := func(_ context.Context, argv []string, log string) (cost, error) {
		order = append(order, argv[0]+"<"+log)
		clock++
		return cost{Wall: clock}, nil
	}
	a, b := contend("a"), contend("b")
	a.measure, b.measure, b.log = measure, measure, "own"
	if err := interleave(t.Context(), 3, "log", a, b); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, " "), strings.Repeat("a<log b<own ", 4); got+" " != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// the first round is not counted
	if diff := cmp.Diff([]cost{{Wall: 3}, {Wall: 5}, {Wall: 7}}, a.runs); diff != "" {
		t.Errorf("a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]cost{{Wall: 4}, {Wall: 6}, {Wall: 8}}, b.runs); diff != "" {
		t.Errorf("b (-want +got):\n%s", diff)
	}
}

func TestAFailedRunEndsTheRow(t *testing.T) {
	fail := errors.New("no such file")
	a, b := contend("a", "--flag"), contend("b")
	a.measure = func(context.Context, []string, string) (cost, error) { return cost{}, fail }
	b.measure = func(context.Context, []string, string) (cost, error) { t.Error("b ran"); return cost{}, nil }
	err := interleave(t.Context(), 3, "log", a, b)
	if !errors.Is(err, fail) || !strings.HasPrefix(err.Error(), "a --flag < log: ") {
		t.Errorf("got %v", err)
	}
}

func TestAssignments(t *testing.T) {
	tests := []struct{ argv, env, command string }{
		{"cat", "", "cat"},
		{"A=1 B=2 cat --x=3", "A=1 B=2", "cat --x=3"},
		{"cat A=1", "", "cat A=1"},
		{"A=1", "", "A=1"},
	}
	for _, tt := range tests {
		env, command := assignments(strings.Fields(tt.argv))
		if got, want := strings.Join(env, " "), tt.env; got != want {
			t.Errorf("%s: environment %q, want %q", tt.argv, got, want)
		}
		if got, want := strings.Join(command, " "), tt.command; got != want {
			t.Errorf("%s: command %q, want %q", tt.argv, got, want)
		}
	}
}

// Only the command's own cost may be measured. Its cache must be removed after it ends.
func TestARunIsMeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("exit $(($(ls -A \"$XDG_CACHE_HOME\" | wc -l) + $VALUE))\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, measure := range []func(context.Context, []string, string) (cost, error){once, betweenPipes} {
		c, err := measure(t.Context(), []string{"VALUE=0", "sh"}, log)
		if err != nil {
			t.Fatal(err)
		}
		if c.Wall <= 0 || c.Peak <= 0 || c.CPU < 0 {
			t.Errorf("got %+v", c)
		}
		if _, err := measure(t.Context(), []string{"VALUE=3", "sh"}, log); err == nil || err.Error() != "exit status 3" {
			t.Errorf("a command that fails: got %v", err)
		}
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d caches are left", len(left))
	}
}
