package debuginfod

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The expected names are made by path_escape of elfutils 0.192.
func TestNamesOfSourcesInTheCache(t *testing.T) {
	long := "/build/" + strings.Repeat("very-long/", 30) + "pool.cc"
	for path, want := range map[string]string{
		"/src/a.c":              "source-8139a45d-#src#a.c",
		"/src/[odd] name+.c":    "source-75791737-#src##odd##name#.c",
		"/usr/include/c++/12/x": "source-b2d88802-#usr#include#c###12#x",
	} {
		if got := sourceName(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := sourceName(long); len(got) != len("source-01234567-")+maxSourceTail || !strings.HasSuffix(got, "#very-long#pool.cc") {
		t.Errorf("a long path: got %s, of %d bytes", got, len(got))
	}
}

func TestSourcesAreFetchedOnceAndKept(t *testing.T) {
	const text = "int main(void)\n{\n}\n"
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/source/src/../src/a b.c") {
			w.Write([]byte(text))
			return
		}
		http.NotFound(w, r)
	})
	dir := t.TempDir()
	c := newClient(t, Options{CacheDir: dir}, s.URL)
	for range 2 {
		got, err := c.Source(t.Context(), testID(1), "/src/../src/a b.c", nil)
		if err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	want := []string{"/buildid/" + testID(1).String() + "/source/src/../src/a b.c"}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Errorf("requests: got %q, want %q", got, want)
	}
	s.stop()
	offline := newClient(t, Options{CacheDir: dir, Offline: true})
	if got, err := offline.Source(t.Context(), testID(1), "/src/../src/a b.c", nil); err != nil || string(got) != text {
		t.Errorf("offline: got %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, testID(1).String(), sourceName("/src/../src/a b.c"))); err != nil {
		t.Error(err)
	}
}

func TestSourcesThatAreNotUsed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/empty.c"):
		case strings.HasSuffix(r.URL.Path, "/huge.c"):
			w.Write(bytes.Repeat([]byte("x"), maxSource+1))
		default:
			http.NotFound(w, r)
		}
	})
	dir := t.TempDir()
	c := newClient(t, Options{CacheDir: dir, RetryLimit: -1}, s.URL)
	for path, missing := range map[string]bool{
		"/none.c":  true,
		"/empty.c": false,
		"/huge.c":  false,
		// refused without a request to the server
		"":                               true,
		"/":                              true,
		"a.c":                            true,
		"./a.c":                          true,
		"/a\x00b":                        true,
		"/../a.c":                        true,
		"/src/../../a.c":                 true,
		"/./src//../../a.c/b":            true,
		"/" + strings.Repeat("x", 5<<10): true,
	} {
		got, err := c.Source(t.Context(), testID(1), path, nil)
		if err == nil || errors.Is(err, fs.ErrNotExist) != missing {
			t.Errorf("%.40q: got %.20q, %v", path, got, err)
		}
	}
	if got := s.requests(); len(got) != 3 {
		t.Errorf("requests: got %q, want 3", got)
	}
	if got := leftovers(t, dir); len(got) > 0 {
		t.Errorf("left in the cache: %q", got)
	}
}
