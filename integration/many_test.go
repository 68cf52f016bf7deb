//go:build linux

package integration

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// manyFiles writes n files of one line each into a folder, and returns their pattern, paths and
// lines.
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

func sorted(text string) string {
	lines := slices.Collect(strings.Lines(text))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Ten thousand files of a folder (with TEST_LONG=1 100,000) must all be read, and memory must stay
// below a limit.
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

// limited restricts symfilter to n open files until the end of the test.
func limited(t *testing.T, n int) {
	t.Helper()
	shell := command
	t.Cleanup(func() { command = shell })
	command = filepath.Join(t.TempDir(), "limited")
	if err := os.WriteFile(command, fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d\nexec '%s' \"$@\"\n", n, shell), 0o755); err != nil {
		t.Fatal(err)
	}
}

// If more files are followed than may be open, they must take turns: each file must be read, and
// read again after it has grown. With a limit of 12, most descriptors are not available for
// followed files.
func TestFilesBeyondTheLimitTakeTurns(t *testing.T) {
	t.Run("64", func(t *testing.T) { takeTurns(t, 64, 300, 32) })
	t.Run("12", func(t *testing.T) { takeTurns(t, 12, 30, 1) })
}

func takeTurns(t *testing.T, limit, files, open int) {
	pattern, paths, lines := manyFiles(t, files)
	limited(t, limit)
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
	want[0] = fmt.Sprintf("symfilter: more files are followed than may be open at once (%d; see ulimit -n), so files take turns; unread lines of a file that is removed while closed are lost\n", open)
	if got := regexp.MustCompile(`at once \([1-4];`).ReplaceAllString(p.stderr.String(), "at once (1;"); got != want[0] {
		t.Errorf("it says %q, want %q", got, want[0])
	}
}

// If the limit of open files is too low to run, symfilter must report it in one line.
func TestTooFewDescriptorsAreReported(t *testing.T) {
	for limit, want := range map[int]string{
		5:  `symfilter: too many open files: only [012] more may be opened, and 3 are needed; see ulimit -n\n`,
		20: "",
	} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" --no-default-debug-directories`, limit), command)
		var stdout, stderr strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("line\n"), &stdout, &stderr
		err := cmd.Run()
		if got := stderr.String(); !regexp.MustCompile("^"+want+"$").MatchString(got) || (err == nil) != (want == "") || (stdout.String() == "line\n") != (want == "") {
			t.Errorf("%d: %v, prints %q, says %q, want %q", limit, err, stdout.String(), got, want)
		}
	}
}
