//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// command is the path of symfilter, which is built once for all tests. checkout is a link to the
// root of the module: the tests compile sources there, because its path, which comes into the
// programs' debug information, holds no blank, whatever the folder of the module is called.
var command, checkout string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "symfilter-integration-")
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
		// A shell ignores the one in background jobs, nohup the other, and the commands would inherit
		// that.
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
		// The command uses a cache of the test. The go command keeps its cache.
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, "go env GOCACHE:", err)
			return 1
		}
		os.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
		os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
		return m.Run()
	}())
}

// long reports whether TEST_LONG requests the full sizes.
func long() bool { return fuzztest.Long() }

// need skips the test if a program or file that it uses is missing, or fails it if CI allows no
// skips.
func need(t *testing.T, parts ...string) {
	t.Helper()
	testenv.Need(t, parts...)
}

// run runs a program, which it needs, to its end and returns its standard output. It fails the test
// on a status other than 0.
func run(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	need(t, name)
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String()
}

// crash runs a program that is expected to die, and returns its output to both streams.
func crash(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("%s %s did not die:\n%s", name, strings.Join(args, " "), out)
	}
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatal(err)
	}
	return out
}
