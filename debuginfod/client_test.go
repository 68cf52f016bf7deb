package debuginfod

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

func TestFindFetchesVerifiesAndKeeps(t *testing.T) {
	id := testID(1)
	want := elfFile(id, 300<<10)
	s := serve(t, has(map[string][]byte{debugPath(id): want}))
	c := newClient(t, Options{}, s.URL)
	got, notes, err := find(t, c, buildid.Query{ID: id})
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, %v, %q; want %d bytes", len(got), err, notes, len(want))
	}
	s.Close()
	for _, again := range []*Client{c, newClient(t, Options{CacheDir: c.cache.dir}, s.URL), newClient(t, Options{CacheDir: c.cache.dir})} {
		got, notes, err := find(t, again, buildid.Query{ID: id})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("from the cache: got %d bytes, %v, %q; want %d bytes", len(got), err, notes, len(want))
		}
	}
	if got := leftovers(t, c.cache.dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
	if diff := cmp.Diff(s.requests(), []string{debugPath(id)}); diff != "" {
		t.Error("requests (-got +want):\n" + diff)
	}
}

func TestMissIsTwoRequestsOnce(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		id := testID(2)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		c := newClient(t, Options{}, s.URL)
		for i := range 3 {
			_, notes, err := find(t, c, buildid.Query{ID: id}, s.URL, "https://h")
			if !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("got %v, want a miss", err)
			}
			if len(notes) != 2 {
				t.Errorf("run %d: notes %q, want 2", i, notes)
			}
		}
		if diff := cmp.Diff(s.requests(), []string{debugPath(id), "/buildid/" + id.String() + "/executable"}); diff != "" {
			t.Error("requests (-got +want):\n" + diff)
		}
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	hangs := make(chan struct{}, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { hangs <- struct{}{}; <-r.Context().Done() })
	c := newClient(t, Options{}, s.URL)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-hangs; cancel() }()
	within(t, time.Minute, func() {
		_, err := c.Find(ctx, buildid.Query{ID: testID(3)}, nil)
		if !errors.Is(err, context.Canceled) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		c.running.Wait() // the request ends too, since no caller waits for it
	})
}

func TestPrefixOfAServerIsKept(t *testing.T) {
	t.Parallel()
	id := testID(1)
	paths := make(chan string, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.EscapedPath()
		sends(elfFile(id, 0))(w, r)
	})
	for prefix, want := range map[string]string{"": "", "/": "", "/x/y//": "/x/y", "/a%2Fb": "/a%2Fb", "/a b": "/a%20b"} {
		if _, notes, err := find(t, newClient(t, Options{}, s.URL+prefix), buildid.Query{ID: id}); err != nil {
			t.Errorf("%q: %v, %q", prefix, err, notes)
			continue
		}
		if got, want := <-paths, want+debugPath(id); got != want {
			t.Errorf("%q: got %s, want %s", prefix, got, want)
		}
	}
}
