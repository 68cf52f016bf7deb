//go:build linux

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// do runs or replays cmd. If combined is set, stdout contains both streams. The error is an
// *exec.ExitError or nil.
func (r *recorder) do(t testing.TB, cmd *exec.Cmd, stdin []byte, combined bool) (stdout, stderr []byte, err error) {
	t.Helper()
	if isAlways(cmd.Args[0]) || r.isLive(t) || r.real && !r.record {
		return runCommand(cmd, stdin, combined)
	}
	if cmd.Stdin != nil {
		if stdin, err = io.ReadAll(cmd.Stdin); err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = nil
	}
	nameFolders(t)
	c := &recordedCommand{Stdin: inputHash(stdin), Source: sourceHash(t, cmd.Args)}
	for _, arg := range cmd.Args {
		c.Argv = append(c.Argv, fold(arg))
	}
	for _, v := range cmd.Env {
		if !slices.Contains(r.environ, v) && !strings.HasPrefix(v, "PWD=") {
			c.Env = append(c.Env, fold(v))
		}
	}
	if !r.record {
		stdout, stderr, err = r.replay(t, c)
		if cmd.Stderr != nil {
			cmd.Stderr.Write(stderr)
		}
		return stdout, stderr, err
	}
	before := listFolders(cmd)
	stdout, stderr, cmdErr := runCommand(cmd, stdin, combined)
	c.Stdout, c.Stderr = r.keepText(t, stdout), r.keepText(t, stderr)
	var exit *exec.ExitError
	if errors.As(cmdErr, &exit) {
		c.Exit = exit.ExitCode()
	} else if cmdErr != nil {
		t.Fatal(cmdErr)
	}
	after := listFolders(cmd)
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if info, there := before[path]; there && os.SameFile(info, after[path]) && info.ModTime().Equal(after[path].ModTime()) && info.Size() == after[path].Size() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > maxRecordedRaw {
			r.drop(t)
			return stdout, stderr, cmdErr
		}
		c.Files = append(c.Files, recordedFile{Path: fold(path), Mode: after[path].Mode().Perm(), Hash: r.keep(t, data)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live[testOf(t)] {
		r.tests[testOf(t)] = append(r.tests[testOf(t)], c)
	}
	return stdout, stderr, cmdErr
}

// drop deletes the recording of a test because its files are too large.
func (r *recorder) drop(t testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[testOf(t)] = true
	delete(r.tests, testOf(t))
	t.Logf("%s cannot be recorded: its files are too large", testOf(t))
}

// isLive reports whether the test runs live programs, which are not recorded.
func (r *recorder) isLive(t testing.TB) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[testOf(t)]
}

// runCommand runs a command to its end. stdin is its standard input unless it already has one. Its
// standard error is copied to cmd.Stderr, too.
func runCommand(cmd *exec.Cmd, stdin []byte, combined bool) (stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	if cmd.Stdin == nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	cmd.Stdout = &out
	switch {
	case combined:
		cmd.Stderr = &out
	case cmd.Stderr != nil:
		cmd.Stderr = io.MultiWriter(&errs, cmd.Stderr)
	default:
		cmd.Stderr = &errs
	}
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

// replay writes the files of c and returns its recorded output and error.
func (r *recorder) replay(t testing.TB, c *recordedCommand) (stdout, stderr []byte, err error) {
	t.Helper()
	key := c.key()
	r.mu.Lock()
	same := r.commands[key]
	n := r.used[key]
	r.used[key]++
	r.mu.Unlock()
	if len(same) == 0 {
		t.Fatalf("this command, with these sources, is not recorded; make recordings does it: %q", slices.Concat(c.Env, c.Argv))
	}
	c = same[min(n, len(same)-1)]
	for _, f := range c.Files {
		path := unfold(f.Path)
		os.Remove(path)
		if err := os.WriteFile(path, r.content(t, f.Hash), f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	if c.Exit != 0 {
		err = exitError(t, c.Exit)
	}
	return r.text(t, c.Stdout), r.text(t, c.Stderr), err
}

// exitError returns the error of a command that ended with an exit code or, if negative, by a
// signal.
func exitError(t testing.TB, code int) error {
	script := "exit " + strconv.Itoa(code)
	if code < 0 {
		script = "kill -ABRT $$"
	}
	err := exec.Command("sh", "-c", script).Run()
	if err == nil {
		t.Fatalf("sh -c %q succeeds", script)
	}
	return err
}

// inputHash returns the hash of an input, computed after fold has replaced the folders of tests. It
// returns "" for an empty input.
func inputHash(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(fold(string(data))))
	return hex.EncodeToString(sum[:8])
}

var sourceFile = regexp.MustCompile(`\.(c|cc|cpp|h|rs|s|S|ld)$`)

// sourceHash returns the hash of the sources that a command names and of the headers next to them:
// a change of a file makes the recording invalid. It returns "" if the command names no source.
func sourceHash(t testing.TB, argv []string) string {
	t.Helper()
	var all []string
	for _, arg := range argv {
		if _, err := os.Stat(arg); err != nil || !sourceFile.MatchString(arg) {
			continue
		}
		headers, err := filepath.Glob(filepath.Join(filepath.Dir(arg), "*.h"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, arg), headers...)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	var b strings.Builder
	for _, path := range slices.Compact(all) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s", path, data)
	}
	return inputHash([]byte(b.String()))
}

// combined and output are like cmd.CombinedOutput and cmd.Output, for recorded programs.
func (r *recorder) combined(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	out, _, err := r.do(t, cmd, nil, true)
	return out, err
}

func (r *recorder) output(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	out, _, err := r.do(t, cmd, nil, false)
	return out, err
}

// A recording must not be replayed after the source that the command names, or a header next to it,
// has changed.
func TestChangedSourcesAreOthers(t *testing.T) {
	dir := t.TempDir()
	source, header := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.h")
	seen := make(map[string]bool)
	for i, change := range []struct{ path, text string }{{source, "int a;"}, {source, "int b;"}, {header, "int c;"}, {header, "int d;"}} {
		if err := os.WriteFile(change.path, []byte(change.text), 0o600); err != nil {
			t.Fatal(err)
		}
		seen[sourceHash(t, []string{"gcc", "-c", source, "-o", filepath.Join(dir, "a.o")})] = true
		if len(seen) != i+1 || seen[""] {
			t.Errorf("%d hashes after %d changes: %v", len(seen), i+1, seen)
		}
	}
}
