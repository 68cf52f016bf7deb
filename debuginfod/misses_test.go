package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
)

// remember stores a miss for k, as the client does if no server has it.
func remember(c *diskCache, k key) {
	c.rememberMiss(k, []serverMiss{{"http://h.invalid", time.Now()}})
	c.boundMisses()
}

// fill writes misses to the cache, for two files of each build ID. The misses of the n-th ID are n
// seconds younger than the first ID's.
func fill(t *testing.T, c *diskCache, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		for _, kind := range []buildid.Kind{buildid.Debug, buildid.Executable} {
			k := key{id: testID(n), kind: kind}
			remember(c, k)
			then := time.Now().Add(time.Duration(n-100_000) * time.Second)
			if err := os.Chtimes(filepath.Join(c.dir, k.path()), then, then); err != nil && from == 0 && n == 0 {
				t.Fatal(err)
			}
		}
	}
}

// emptyDirs returns the directories of build IDs that are empty.
func emptyDirs(t *testing.T, dir string) (empty []string) {
	t.Helper()
	dirs, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if entries, err := os.ReadDir(filepath.Join(dir, d.Name())); d.IsDir() && err == nil && len(entries) == 0 {
			empty = append(empty, d.Name())
		}
	}
	return empty
}

func TestMissesOnDiskAreBounded(t *testing.T) {
	t.Parallel()
	limits := missLimits{most: 100, kept: 80, look: 10}
	ids := 500
	if long() {
		limits, ids = missLimits{maxMisses, keptMisses, missLook}, 20_000
	}
	dir := filepath.Join(t.TempDir(), "cache")
	files := []string{"debuginfo", "executable", "source##a.c"}
	for i, name := range files { // real files in the directories of the oldest misses
		put(t, dir, testID(i).String()+"/"+name, elfFile(testID(i), 1000), 0o400)
	}
	one, other := newCache(dir), newCache(dir) // as in two processes
	one.misses.limits, other.misses.limits = limits, limits
	for n := 0; n < ids; n += 5 {
		fill(t, one, n, n+3)
		fill(t, other, n+3, n+5)
		if n%(ids/10) == 0 {
			// the second process may exceed the bound by the misses between two of its counts
			if got, most := one.info().Misses, limits.most+limits.look; got > most {
				t.Fatalf("after %d build IDs: %d misses, want at most %d", n, got, most)
			}
		}
	}
	info := one.info()
	if info.Misses > limits.most+limits.look || info.Misses < limits.kept-2*limits.look || info.Files != len(files) || info.Problems != nil {
		t.Errorf("got %+v; want at most %d misses, not many less, and %d files", info, limits.most, len(files))
	}
	if got := emptyDirs(t, dir); got != nil {
		t.Errorf("%d directories are empty, the first is %s", len(got), got[0])
	}
	for i, name := range files {
		if _, err := os.Stat(filepath.Join(dir, testID(i).String(), name)); err != nil {
			t.Error(err)
		}
	}
	// The oldest misses were removed first: only the newest are left.
	var left []string
	for n := range ids {
		if info, err := os.Stat(filepath.Join(dir, testID(n).String(), "executable")); err == nil && info.Size() == 0 {
			left = append(left, fmt.Sprint(n))
		}
	}
	if got, want := left[len(left)-1], fmt.Sprint(ids-1); got != want {
		t.Errorf("the youngest miss is %s, want %s", got, want)
	}
	if got, want := len(left), limits.most/2; got > want+2 {
		t.Errorf("%d build IDs are left: %q; want at most the last %d", got, left, want)
	}
	for i, s := range left {
		if want := fmt.Sprint(ids - len(left) + i); s != want {
			t.Errorf("build ID %s is left and not %s", s, want)
			break
		}
	}

	testenv.Need(t, "debuginfod-find")
	for i, word := range files[:2] {
		cmd := exec.Command("debuginfod-find", word, testID(i).String())
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=http://127.0.0.1:1", "DEBUGINFOD_CACHE_PATH="+dir)
		out, err := cmd.Output()
		if want := filepath.Join(dir, testID(i).String(), word); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("debuginfod-find %s: got %q, %v; want %s", word, out, err, want)
		}
	}
}

// At the first new miss, a large number of misses from an earlier version must be trimmed. Only few
// of them may be in memory at a time.
func TestMissesOfEarlierVersionsAreBounded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	const old = 1000
	for n := range old {
		age(t, put(t, dir, testID(n).String()+"/debuginfo", nil, 0o644), time.Hour, time.Duration(old-n)*time.Second)
	}
	c := newCache(dir)
	c.misses.limits = missLimits{most: 100, kept: 80, look: 10}
	remember(c, key{id: testID(old), kind: buildid.Debug})
	got := tree(t, dir)
	var want []string
	for n := old - 79; n <= old; n++ {
		want = append(want, testID(n).String(), testID(n).String()+"/debuginfo")
	}
	want = append(want, key{id: testID(old), kind: buildid.Debug}.missedByPath())
	got = slices.DeleteFunc(got, func(name string) bool { return name == missFile })
	if !slices.Equal(got, want) {
		t.Errorf("got %d names, want the %d of the last 80 misses", len(got), len(want))
	}
}

// An answer must not wait until the misses on disk are counted. Close must wait for the count.
func TestAMissIsAnsweredBeforeMissesAreCounted(t *testing.T) {
	t.Parallel()
	s := serve(t, status(404))
	c := newClient(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")}, s.URL)
	c.cache.misses.limits = missLimits{most: 4, kept: 2, look: 1}
	c.cache.misses.mu.Lock()
	// this context ends only if an answer waits for the count
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := range 10 {
		if _, err := c.Find(ctx, query(n), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
	c.cache.misses.mu.Unlock()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := c.cache.info().Misses; got > 4 {
		t.Errorf("%d misses, want at most 4", got)
	}
}

// Misses may be counted only if the build IDs could have too many: most caches have few build IDs.
func TestMissesOfFewBuildIDsAreNotLookedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ids, want int }{{0, 0}, {1, 2}, {5, 10}, {6, 1}} {
		dir := t.TempDir()
		for n := range tt.ids {
			// empty: a miss
			put(t, dir, testID(n).String()+"/debuginfo", []byte{1}[:min(n, 1)], 0o644)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := trimMisses(root, missLimits{most: 10, kept: 8, look: 1}); got != tt.want {
			t.Errorf("%d build IDs: %d misses at most, want %d", tt.ids, got, tt.want)
		}
		root.Close()
	}
}

// If goroutines write misses while others fetch files and clean the cache, only misses may get
// lost.
func TestMissesAreBoundedWhileFilesAreFetched(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		id, err := buildid.Parse([]byte(strings.Split(r.URL.Path, "/")[2]))
		if err != nil || !strings.HasSuffix(r.URL.Path, "/debuginfo") {
			w.WriteHeader(404)
			return
		}
		sends(elfFile(id, 1000))(w, r)
	})
	dir := filepath.Join(t.TempDir(), "cache")
	c := newClient(t, Options{CacheDir: dir}, s.URL)
	c.cache.misses.limits = missLimits{most: 4, kept: 2, look: 1}
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			k := key{id: testID(n), kind: buildid.Executable} // in the directory of the fetched file
			remember(c.cache, k)
			f, err := c.Find(t.Context(), query(n), nil)
			if err != nil {
				t.Error(err)
				return
			}
			f.Close()
			remember(c.cache, k)
		})
	}
	all.Wait()
	if info := c.cache.info(); info.Files != 60 || info.Misses > 4 || info.Temporary != 0 || info.Problems != nil {
		t.Errorf("got %+v, want 60 files and at most 4 misses", info)
	}
	if got := emptyDirs(t, dir); got != nil {
		t.Errorf("empty directories: %q", got)
	}
}
