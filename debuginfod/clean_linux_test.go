package debuginfod

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

const day = 24 * time.Hour

// oldCache creates a cache with files and directories of many ages.
func oldCache(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "cache")
	file := func(n int, name string, body []byte, read, changed time.Duration) {
		age(t, put(t, dir, testID(n).String()+"/"+name, body, 0o400), read, changed)
	}
	file(1, "debuginfo", elfFile(testID(1), 0), 8*day, time.Hour) // not read for long
	file(1, "executable", elfFile(testID(1), 0), 6*day, 100*day)
	file(2, "debuginfo", nil, 8*day, 8*day) // an old miss
	file(3, "source##src##a.c", []byte("int a;"), 8*day, 8*day)
	file(3, "source##src##b.c", []byte("int b;"), day, 8*day)
	file(3, "notes", []byte("mine"), 8*day, 8*day)
	file(4, "debuginfo", elfFile(testID(4), 0), time.Hour, 8*day)
	put(t, dir, "README", []byte("mine"), 0o400)
	age(t, filepath.Join(dir, "README"), 8*day, 8*day)
	for n, changed := range map[int]time.Duration{5: 8 * day, 6: 6 * day} { // empty directories
		path := filepath.Join(dir, testID(n).String())
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		age(t, path, changed, changed)
	}
	age(t, put(t, dir, cleanIntervalFile, []byte("86400"), 0o644), 2*day, 2*day)
	return dir
}

func TestCleanIsElfutils(t *testing.T) {
	ours := oldCache(t)
	if err := newCache(ours).clean(time.Now()); err != nil {
		t.Fatal(err)
	}
	got := tree(t, ours)
	id := func(n int) string { return testID(n).String() }
	want := []string{"README", id(1), id(1) + "/executable", id(3), id(3) + "/notes", id(3) + "/source##src##b.c",
		id(4), id(4) + "/debuginfo", id(6)}
	slices.Sort(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error("-got +want:\n" + diff)
	}
	info, err := os.Stat(filepath.Join(ours, cleanIntervalFile))
	if err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("the time of the cleaning: got %v, %v", info.ModTime(), err)
	}
	// The cache must not be cleaned again within the interval.
	age(t, filepath.Join(ours, id(4), "debuginfo"), 9*day, 9*day)
	if err := newCache(ours).clean(time.Now().Add(23 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, ours), want); diff != "" {
		t.Error("within the interval (-got +want):\n" + diff)
	}

	testenv.Need(t, "debuginfod-find")
	theirs := oldCache(t)
	cmd := exec.Command("debuginfod-find", "debuginfo", id(9))
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=http://127.0.0.1:1", "DEBUGINFOD_CACHE_PATH="+theirs)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("a file that nobody has was found: %s", out)
	}
	os.RemoveAll(filepath.Join(theirs, id(9)))
	// this directory became empty just now, and elfutils keeps an empty directory for
	// max_unused_age_s
	os.Remove(filepath.Join(theirs, id(2)))
	if diff := cmp.Diff(got, tree(t, theirs)); diff != "" {
		t.Error("-ours +elfutils':\n" + diff)
	}
}

// A file that was read must not be removed, even on a file system that records no access times.
func TestReadingKeepsAFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOATIME, "size=1m,mode=0700"); err != nil {
		t.Log("a file system that notes no reading cannot be mounted here: ", err)
	} else {
		defer syscall.Unmount(dir, syscall.MNT_DETACH)
	}
	path := put(t, dir, testID(1).String()+"/debuginfo", elfFile(testID(1), 0), 0o400)
	age(t, path, 8*day, 9*day)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := info.ModTime()
	f, err := newCache(dir).find(t.Context(), query(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if info, err = os.Stat(path); err != nil || time.Since(accessed(info)) > time.Minute || !info.ModTime().Equal(changed) {
		t.Errorf("got the times %v and %v, %v; want now and %v", accessed(info), info.ModTime(), err, changed)
	}
}
