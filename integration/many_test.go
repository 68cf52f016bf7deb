//go:build linux

package integration

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// manyFiles writes n files of one line each into one folder, and returns their pattern and lines.
func manyFiles(t *testing.T, n int) (pattern string, paths, lines []string) {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("app-%06dx.log", i))
		line := fmt.Sprintf("line of %06d\n", i)
		if err := os.WriteFile(path, []byte(line), 0o666); err != nil {
			t.Fatal(err)
		}
		paths, lines = append(paths, path), append(lines, line)
	}
	return filepath.Join(dir, "*.log"), paths, lines
}

// sorted returns the lines of text, sorted.
func sorted(text string) string {
	lines := slices.Collect(strings.Lines(text))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Ten thousand files of a folder are all read, in little memory; 100,000 with TEST_LONG=1.
func TestTenThousandFilesOfAFolder(t *testing.T) {
	files, maxPeak := 10_000, int64(200<<20)
	if long() {
		files, maxPeak = 100_000, 1<<30
	}
	pattern, _, lines := manyFiles(t, files)
	p := start(t, "-F", pattern)
	if err := p.out.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for r := bufio.NewReader(p.out); got.Len() < files*len(lines[0]); {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %d of %d lines", err, got.Len()/len(lines[0]), files)
		}
		got.WriteString(line)
	}
	if sorted(got.String()) != strings.Join(lines, "") {
		t.Errorf("got other lines than one of each file")
	}
	if peak := p.peak(t); peak > maxPeak {
		t.Errorf("got a peak of %d MiB, want at most %d", peak>>20, maxPeak>>20)
	} else {
		t.Logf("peak memory %d MiB", peak>>20)
	}
}

// If there are more files than may be open, they take turns: all are read, and read again after
// they grow.
func TestFilesBeyondTheLimitTakeTurns(t *testing.T) {
	const files = 300
	pattern, paths, lines := manyFiles(t, files)
	shell := command
	defer func() { command = shell }()
	command = filepath.Join(t.TempDir(), "limited")
	if err := os.WriteFile(command, []byte("#!/bin/sh\nulimit -n 64\nexec '"+shell+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := startFollowing(t, filepath.Join(t.TempDir(), "out"), nil, "-F", pattern)
	want := slices.Clone(lines)
	p.wait(t, func(printed string) bool { return strings.Count(printed, "\n") == len(want) })
	for i, path := range paths {
		line := fmt.Sprintf("more of %06d\n", i)
		appendTo(t, path, line)
		want = append(want, line)
	}
	p.wait(t, func(printed string) bool { return strings.Count(printed, "\n") == len(want) })
	if got := sorted(p.printed(t)); got != sorted(strings.Join(want, "")) {
		t.Errorf("got %s", got)
	}
	p.cmd.Process.Kill()
	<-p.ended
	if got, want := p.stderr.String(), "symfilter: more files are followed than may be open at once (32; see ulimit -n): they are opened in turn; if one is removed while it is closed, its unread lines are lost\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
