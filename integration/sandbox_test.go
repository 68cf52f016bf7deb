//go:build linux

package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// landlocked skips the test if the kernel has no Landlock.
func landlocked(t *testing.T) {
	t.Helper()
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		t.Skipf("missing: Landlock: %v", errno)
	}
}

// A conversation is a running symfilter that reads from a pipe.
type conversation struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr strings.Builder
}

func converse(t *testing.T, env []string, args ...string) *conversation {
	t.Helper()
	c := &conversation{t: t, cmd: exec.Command(command, args...)}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = &c.stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewReader(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask writes a line and returns the line of output for it.
func (c *conversation) ask(line string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	answer, err := c.stdout.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.stderr.String())
	}
	return strings.TrimSuffix(answer, "\n")
}

// end closes the input and returns the text on standard error.
func (c *conversation) end() string {
	c.t.Helper()
	c.stdin.Close()
	rest, _ := io.ReadAll(c.stdout)
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("%v\n%s%s", err, rest, c.stderr.String())
	}
	return c.stderr.String()
}

// threads returns, for each thread of a process, the restrictions shown in its /proc status.
func threads(t *testing.T, pid int) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for line := range strings.Lines(string(data)) {
			if name, value, _ := strings.Cut(line, ":"); name == "NoNewPrivs" || name == "Seccomp" {
				said = append(said, name+" "+strings.TrimSpace(value))
			}
		}
		all = append(all, strings.Join(said, ", "))
	}
	if len(all) == 0 {
		t.Fatalf("no threads of %d", pid)
	}
	return all
}

// For every kind of input, no thread may keep the right to start programs.
func TestEveryThreadIsConfined(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const confined, free = "NoNewPrivs 1, Seccomp 2", "NoNewPrivs 0, Seccomp 0"
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"log", nil, confined},
		{"server", []string{"--debuginfod-urls=http://127.0.0.1:9"}, confined},
		{"markup", []string{"--output=markup"}, confined},
		{"llvm", []string{"--filter-markup"}, confined},
		{"free", []string{"--no-sandbox"}, free},
		{"free llvm", []string{"--filter-markup", "--no-sandbox"}, free},
		{"followed", []string{"-F", log}, confined},
		{"followed free", []string{"-F", log, "--no-sandbox"}, free},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := converse(t, nil, tt.args...)
			if strings.HasPrefix(tt.name, "followed") {
				if line, err := c.stdout.ReadString('\n'); line != "line\n" {
					t.Fatalf("%q, %v\n%s", line, err, c.stderr.String())
				}
			} else if got := c.ask("line"); got != "line" {
				t.Fatalf("got %q", got)
			}
			for _, said := range threads(t, c.cmd.Process.Pid) {
				if said != tt.want {
					t.Errorf("a thread with %s, want %s", said, tt.want)
				}
			}
			c.cmd.Process.Kill()
			c.cmd.Wait()
		})
	}
}

// The process must be able to write only to the folder named by a flag, and not to a folder that
// later gets this name.
func TestOnlyNamedFoldersAreWrittenTo(t *testing.T) {
	landlocked(t)
	dumpfile := func(n int) string { return fmt.Sprintf("{{{dumpfile:llvm-profile:%d.profraw}}}", n) }
	for _, tt := range []struct {
		name string
		args []string
		want string // expected contents of the other folder
		said string
	}{
		{"confined", nil, "", "permission denied"},
		{"free", []string{"--no-sandbox"}, "1.profraw", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "named")
			list := filepath.Join(dir, "list.json")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			c := converse(t, nil, append(tt.args, "--dumpfile-output="+list)...)
			c.ask(dumpfile(0))
			wait(t, list, "0.profraw")
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			c.ask(dumpfile(1))
			c.stdin.Close()
			io.Copy(io.Discard, c.stdout)
			err := c.cmd.Wait()
			data, _ := os.ReadFile(list)
			if !strings.Contains(string(data), tt.want) || tt.want == "" && data != nil {
				t.Errorf("the list in the other folder: %q", data)
			}
			if said := c.stderr.String(); !strings.Contains(said, tt.said) || (err != nil) != (tt.said != "") {
				t.Errorf("it ended with %v, and said %q", err, said)
			}
		})
	}
}

// wait waits until a file contains text.
func wait(t *testing.T, path, text string) {
	t.Helper()
	for range 6000 {
		if data, _ := os.ReadFile(path); strings.Contains(string(data), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s never held %q", path, text)
}

// A confined symfilter must be able to read inputs named by a descriptor, a named pipe, or the
// /proc folder of another process.
func TestOpenInputsAreReadWhenConfined(t *testing.T) {
	need(t, "bash")
	log, err := filepath.Abs("../testdata/crash.log")
	if err != nil {
		t.Fatal(err)
	}
	debug, err := filepath.Abs("../testdata/debug")
	if err != nil {
		t.Fatal(err)
	}
	want := run(t, nil, command, "--debug-file-directory", debug, log)
	for _, script := range []string{
		`"$0" --debug-file-directory "$1" <"$2"`,
		`"$0" --debug-file-directory "$1" /dev/stdin <"$2"`,
		`cat "$2" | "$0" --debug-file-directory "$1" /dev/stdin`,
		`"$0" --debug-file-directory "$1" /proc/self/fd/7 7<"$2"`,
		`"$0" --debug-file-directory "$1" <(cat "$2")`,
		`"$0" --debug-file-directory "$1" "$2" > >(cat); wait $!`,
		`"$0" --debug-file-directory "/proc/$$/root$1" "/proc/$$/root$2"; exit`,
		`exec 7<"$2"; "$0" --debug-file-directory "$1" /proc/$$/fd/7; exit`,
	} {
		if got := run(t, nil, "bash", "-c", script, command, debug, log); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}

// The cache's folder must be made before the process gives up the right to make it. symfilter index
// must write one index for each debug file to it.
func TestTheCacheIsKeptWhenConfined(t *testing.T) {
	debug, err := filepath.Abs("../testdata/debug")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(command, "index", debug)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(home, "new"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, _ := filepath.Glob(filepath.Join(debug, ".build-id", "*", "*.debug"))
	if all, _ := filepath.Glob(filepath.Join(home, "new", "symfilter", "*.symindex")); len(files) == 0 || len(all) != len(files) {
		t.Errorf("indexes of %q: %q", files, all)
	}
	c := converse(t, []string{"XDG_CACHE_HOME=" + filepath.Join(home, "other")}, "-v")
	c.ask("line")
	if said := c.end(); !strings.Contains(said, "symfilter: sandbox: no new privileges") {
		t.Errorf("said %q", said)
	}
	if info, err := os.Stat(filepath.Join(home, "other", "symfilter")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the cache: %v, %v", info, err)
	}
}

// The package's own tests usually run with the race detector and therefore with cgo, where Landlock
// cannot restrict all threads. This test builds them as the command is built.
func TestTheStaticBuildHasLandlock(t *testing.T) {
	landlocked(t)
	binary := filepath.Join(t.TempDir(), "sandbox.test")
	build := exec.Command("go", "test", "-c", "-o", binary, "../internal/sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c ../internal/sandbox: %v\n%s", err, out)
	}
	out := run(t, nil, binary, "-test.v")
	if !strings.Contains(out, "--- PASS: TestAllThreadsGiveUpWhatThePolicyDoesNotKeep") {
		t.Errorf("%s", out)
	}
}
