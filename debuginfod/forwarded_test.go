package debuginfod

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// A search on behalf of another server must send the names of the servers before it. Its misses
// must not be kept for other searches: a server may refuse the request only because of those names.
func TestMissesOfForwardedSearchesAreNotKept(t *testing.T) {
	var mu sync.Mutex
	var chains []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		chains = append(chains, r.Header.Get("X-Forwarded-For"))
		http.NotFound(w, r)
	}))
	defer s.Close()
	dir := t.TempDir()
	ask := func(ctx context.Context) {
		t.Helper()
		c := newClient(t, Options{CacheDir: dir, Forwarded: "_us"}, s.URL) // no misses in memory
		if _, err := c.Find(ctx, buildid.Query{ID: testID(1), Better: true}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Source(ctx, testID(1), "/src/a.c", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("source: got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	forwarded := WithForwarded(t.Context(), "_a, _us")
	ask(forwarded)
	ask(forwarded)
	ask(t.Context())
	ask(t.Context())
	ask(forwarded)
	want := []string{"_a, _us", "_a, _us", "_a, _us", "_a, _us", "_us", "_us", "_us", "_a, _us"} // then only source files are asked for
	if diff := cmp.Diff(want, chains); diff != "" {
		t.Errorf("X-Forwarded-For (-want +got):\n%s", diff)
	}
}

// Two servers that request one file from each other must not deadlock. A forwarded search must not
// join a download for our own clients. It must get a slot even if our own searches use all of
// theirs.
func TestForwardedSearchesWaitForNoDownload(t *testing.T) {
	begun, end := make(chan struct{}, maxFlights), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-For") == "" {
			begun <- struct{}{}
			<-end
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	c := newClient(t, Options{}, s.URL)
	var all sync.WaitGroup
	for n := range maxFlights {
		all.Go(func() { c.Find(t.Context(), buildid.Query{ID: testID(n), Better: true}, nil) })
	}
	for range maxFlights {
		<-begun
	}
	for _, chain := range []string{"_a, _us", "_a, _b, _c, _d, _e, _f, _g, _h, _i, _us"} {
		if _, err := c.Find(WithForwarded(t.Context(), chain), buildid.Query{ID: testID(0), Better: true}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %s got %v", chain, err)
		}
	}
	close(end)
	all.Wait()
}
