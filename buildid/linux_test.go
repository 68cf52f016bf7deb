//go:build linux

package buildid

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func putFIFO(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
}

// checkNoFileStaysOpen fails the test if more files are open at its end than now. Tests call it
// first, so that its check runs last.
func checkNoFileStaysOpen(t *testing.T) {
	t.Helper()
	before := openFiles(t)
	t.Cleanup(func() {
		if after := openFiles(t); len(after) > len(before) {
			t.Errorf("open files:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	})
}

func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(target, "anon_inode:") {
			files = append(files, target)
		}
	}
	return files
}

func TestWithoutDescriptorsAFindIsNoMiss(t *testing.T) {
	dir := t.TempDir()
	var finders []finder
	for _, fc := range finderCases {
		put(t, filepath.Join(dir, filepath.FromSlash(fc.place)), program{id: wanted}.bytes(t))
		finders = append(finders, fc.new(dir))
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	for i, fc := range finderCases {
		path := filepath.Join(dir, filepath.FromSlash(fc.place))
		f, err := finders[i].Find(t.Context(), Query{ID: mustParse(t, wanted), Name: path}, nil)
		if f != nil {
			f.Close()
		}
		if !errors.Is(err, syscall.EMFILE) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: Find = %v, %v; want EMFILE", fc.name, f, err)
		}
	}
}
