//go:build linux

package integration

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// command is the path of symfilter, which is built once for all tests. checkout is a link to the
// root of the module. Sources are compiled there because debug information has the path, and a
// link's path has no blank, whatever the module's own path is.
var command, checkout string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := newMain()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		command, checkout = filepath.Join(dir, "symfilter"), filepath.Join(dir, "checkout")
		root, err := filepath.Abs("..")
		if err == nil {
			err = os.Symlink(root, checkout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// The developer's environment must not affect the tests: no network, no colours, no
		// options.
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			for _, prefix := range []string{"SYMFILTER_", "DEBUGINFOD_", "LLVM_", "ASAN_", "NO_COLOR", "CLICOLOR"} {
				if strings.HasPrefix(name, prefix) {
					os.Unsetenv(name)
				}
			}
		}
		// On a busy machine, a search for a local file may take more than the 2 s of a pipe.
		os.Setenv("SYMFILTER_WAIT", "5m")
		// A shell ignores SIGINT in background jobs, nohup ignores SIGHUP, and the commands would
		// inherit this.
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
			if signal.Ignored(sig) {
				signal.Notify(make(chan os.Signal, 1), sig)
			}
		}
		build := exec.Command("go", "build", "-buildvcs=false", "-o", command, "../cmd/symfilter")
		// like the shipped command, without the race detector of the tests
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build ../cmd/symfilter: %v\n%s", err, out)
			return 1
		}
		// symfilter uses a cache of the test. The go command keeps the user's.
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, "go env GOCACHE:", err)
			return 1
		}
		os.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
		os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
		if err := producers.load(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if producers.record {
			if err := producers.save(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return code
	}())
}

// newMain makes the folder of a run. Its path has a fixed length: debug information contains it,
// and in recorded files it is replaced by the path of this run.
func newMain() (dir string, err error) {
	for {
		dir = fmt.Sprintf("%s%010d", mainFolder, rand.Uint32())
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

const mainFolder = "/tmp/symfilter-integration-"

// long reports whether TEST_LONG requests the full sizes.
func long() bool { return fuzztest.Long() }

// need skips the test if a program or file is missing, or fails it if CI allows no skips.
func need(t *testing.T, parts ...string) {
	t.Helper()
	producers.need(t, parts...)
}

// run runs a program to its end and returns its standard output. The test is skipped if the program
// is missing, and fails if the status is not 0.
func run(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	need(t, name)
	cmd := exec.Command(name, args...)
	if !filepath.IsAbs(name) {
		// compilers write this name into debug information
		cmd.Dir = filepath.Join(checkout, "integration")
	}
	stdout, stderr, err := producers.do(t, cmd, stdin, false)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr)
	}
	return string(stdout)
}

// crash runs a program that is expected to die, and returns its output to both streams.
func crash(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, _, err := producers.do(t, cmd, nil, true)
	if err == nil {
		t.Fatalf("%s %s did not die:\n%s", name, strings.Join(args, " "), out)
	}
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatal(err)
	}
	return out
}

// startPiped starts cmd with these outputs connected to a pipe, and returns the reading end.
func startPiped(t *testing.T, cmd *exec.Cmd, outputs ...*io.Writer) *os.File {
	t.Helper()
	out, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	defer end.Close()
	for _, o := range outputs {
		*o = end
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return out
}
