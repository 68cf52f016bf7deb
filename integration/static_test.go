//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nobody is the user and group in the Dockerfile.
const nobody = 65532

// The file that scripts/build-static builds and the Dockerfile ships must need no other file.
func TestStaticBuildNeedsNothingAroundIt(t *testing.T) {
	need(t, "git")
	tree := snapshot(t)
	product := buildStatic(t, tree)

	t.Run("is static", func(t *testing.T) {
		built := []string{product}
		if long() { // links for seconds
			daemon := filepath.Join(t.TempDir(), "symfilterd")
			run(t, nil, filepath.Join(tree, "scripts", "build-static"), daemon, "symfilterd")
			if got := run(t, nil, daemon, "--version"); !strings.HasPrefix(got, "symfilterd ") {
				t.Errorf("--version: got %q", got)
			}
			built = append(built, daemon)
		}
		for _, path := range built {
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, p := range f.Progs {
				if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
					t.Errorf("%s has a segment %s", path, p.Type)
				}
			}
		}
	})

	t.Run("says its commit", func(t *testing.T) {
		commit := strings.TrimSpace(git(t, tree, "rev-parse", "HEAD"))
		if got := run(t, nil, product, "--version"); !strings.Contains(got, commit[:12]) || strings.Contains(got, "modified") || strings.Contains(got, "dirty") {
			t.Errorf("--version: got %q, want commit %s, unmodified", got, commit[:12])
		}
	})

	// Initialization at the start costs time in every run, so most values are initialized when they
	// are first needed.
	t.Run("initializes little of its own", func(t *testing.T) {
		allocs, bytes, all := 0, 0, 0
		cmd := exec.Command(product)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		trace, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, trace)
		}
		for line := range strings.Lines(string(trace)) {
			// init PACKAGE @0.1 ms, 0.01 ms clock, 464 bytes, 6 allocs
			f := strings.Fields(line)
			if len(f) < 11 || f[0] != "init" {
				continue
			}
			all++
			if f[1] != "main" && !strings.HasPrefix(f[1], "github.com/symfilter/symfilter") {
				continue
			}
			size, err := strconv.Atoi(f[7])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			n, err := strconv.Atoi(f[9])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			bytes += size
			allocs += n
		}
		if all < 50 {
			t.Fatalf("%d packages were initialized, want at least 50: is the trace another one?", all)
		}
		if allocs > 100 || bytes > 16<<10 {
			t.Errorf("%d allocations, %d bytes, want at most 100 and 16 KiB", allocs, bytes)
		}
	})

	t.Run("names no path of this machine", func(t *testing.T) {
		data, err := os.ReadFile(product)
		if err != nil {
			t.Fatal(err)
		}
		root := strings.TrimSpace(run(t, nil, "go", "env", "GOROOT")) + "/src/runtime/" // part of every Go program
		for _, dir := range []string{tree, root} {
			if dir != "" && bytes.Contains(data, []byte(dir)) {
				t.Errorf("it holds %s", dir)
			}
		}
	})

	t.Run("is built the same elsewhere", func(t *testing.T) {
		clone := filepath.Join(t.TempDir(), "another", "place")
		git(t, tree, "clone", "--quiet", tree, clone)
		if long() { // rebuilds the standard library, which takes 20 s
			cache := t.TempDir()
			t.Setenv("GOCACHE", cache)
		}
		again, err := os.ReadFile(buildStatic(t, clone))
		if err != nil {
			t.Fatal(err)
		}
		if first, err := os.ReadFile(product); err != nil || !bytes.Equal(first, again) {
			t.Errorf("two builds of one commit differ: %d and %d bytes, %v", len(first), len(again), err)
		}
	})

	t.Run("filters a log in an empty root", func(t *testing.T) {
		root := t.TempDir()
		copyFile(t, filepath.Join(root, "symfilter"), product)
		if err := os.CopyFS(filepath.Join(root, "debug"), os.DirFS(filepath.Join("..", "testdata", "debug"))); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(filepath.Join("..", "testdata", "crash.log"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "testdata", "crash.golden"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/symfilter", "--debug-file-directory", "/debug")
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.Stdin = bytes.NewReader(log)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if os.Getuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		} else { // as root in a user namespace, which may change the root folder
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getgid(), Size: 1}}
		}
		got, err := cmd.Output()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) {
			if os.Getuid() == 0 && os.Getenv("CI") == "true" {
				t.Fatalf("start in an empty root: %v", err)
			}
			t.Skipf("this user may not change the root: %v", err)
		}
		const closing = "symfilter: 2 of 11 addresses stayed unresolved: libc.so.6 (2); "
		if err != nil || !strings.HasPrefix(stderr.String(), closing) || strings.Count(stderr.String(), "\n") != 1 {
			t.Fatalf("%v, want %q alone:\n%s", err, closing, stderr.Bytes())
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("testdata/crash.golden (-), printed (+):\n%s", diff)
		}
	})
}

// The Dockerfile must ship the file that make build makes and TestStaticBuildNeedsNothingAroundIt
// checks.
func TestDockerfileShipsTheStaticBuild(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^FROM scratch AS symfilterd$`,
		`(?m)^COPY symfilterd /symfilterd$`,
		`(?m)^ENTRYPOINT \["/symfilterd"\]$`,
		`(?m)^FROM scratch$`,
		`(?m)^COPY symfilter /symfilter$`,
		`(?m)^USER 65532:65532$`,
		`(?m)^ENTRYPOINT \["/symfilter"\]$`,
	} {
		if !regexp.MustCompile(want).Match(data) {
			t.Errorf("no line is like %s", want)
		}
	}
}

// snapshot returns a repository with the current tree committed.
func snapshot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	names := git(t, "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		from := filepath.Join("..", filepath.FromSlash(name))
		if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() {
			copyFile(t, filepath.Join(dir, filepath.FromSlash(name)), from)
		}
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--all")
	git(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "snapshot")
	return dir
}

// buildStatic runs the script build-static of the tree in dir, and returns the file that it built.
func buildStatic(t *testing.T, dir string) string {
	t.Helper()
	product := filepath.Join(t.TempDir(), "symfilter")
	run(t, nil, filepath.Join(dir, "scripts", "build-static"), product)
	return product
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, nil, "git", append([]string{"-c", "safe.directory=" + abs, "-C", abs}, args...)...)
}

// copyFile copies a file with its mode and makes missing folders.
func copyFile(t *testing.T, to, from string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}
