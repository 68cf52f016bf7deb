//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFirstDifference(t *testing.T) {
	long := strings.Repeat("a", 2*ioSize)
	tests := []struct {
		a, b string
		want int64
	}{
		{"", "", -1},
		{"a", "", 0},
		{"", "a", 0},
		{"abc", "abd", 2},
		{"abc", "ab", 2},
		{long, long, -1},
		{long + "b", long + "c", 2 * ioSize},
		{long, long + "a", 2 * ioSize},
		{long + "a", long, 2 * ioSize},
	}
	for i, tt := range tests {
		got, err := firstDifference(iotest.HalfReader(strings.NewReader(tt.a)), strings.NewReader(tt.b))
		if got != tt.want || err != nil {
			t.Errorf("%d: got %d, %v, want %d", i, got, err, tt.want)
		}
	}
	fail := errors.New("disk")
	if _, err := firstDifference(strings.NewReader("a"), iotest.ErrReader(fail)); err != fail {
		t.Errorf("got %v, want %v", err, fail)
	}
}

// A command that does not end by itself must be ended once its output file is complete.
func TestUntilWritten(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	output := filepath.Join(dir, "output")
	d := &daemon{dir: dir, size: 4}
	run := func(ctx context.Context, script string) error {
		os.Remove(output)
		_, err := d.untilWritten(ctx, []string{"sh", "-c", script, output}, nil, output)
		return err
	}
	if err := os.WriteFile(d.want(), []byte("done"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		`printf done >"$0"; exec sleep 1000`,
		`trap 'exit 143' TERM; printf done >"$0"; while :; do sleep 0.01; done`,
		`trap 'exit 0' TERM; printf do >"$0"; printf ne >>"$0"; while :; do sleep 0.01; done`,
	} {
		if err := run(t.Context(), script); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if err := d.compareFile(output); err != nil {
			t.Error(err)
		}
	}
	if err := run(t.Context(), `trap 'exit 3' TERM; printf done >"$0"; while :; do sleep 0.01; done`); err == nil || err.Error() != "exit status 3" {
		t.Errorf("a command that fails at its end: got %v", err)
	}
	if err := run(t.Context(), "exit 3"); err == nil || err.Error() != "it ended early: exit status 3" {
		t.Errorf("a command that fails: got %v", err)
	}
	if err := run(t.Context(), "exit 0"); err == nil || err.Error() != "it ended early: status 0" {
		t.Errorf("a command that ends: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "exec sleep 1000"); err == nil {
		t.Error("a canceled run: no error")
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d caches are left", len(left))
	}

	if err := os.WriteFile(output, []byte("dome"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.compareFile(output); err == nil || err.Error() != "the output differs from symfilter's at byte 2" {
		t.Errorf("got %v", err)
	}
}
