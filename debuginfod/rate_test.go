package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// A pipeServer is a server without a network, for tests with a fake clock. It has no file.
type pipeServer struct {
	conns chan net.Conn
	done  chan struct{}

	mu  sync.Mutex
	ids map[string]int // requests by build ID
}

func (s *pipeServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *pipeServer) Close() error   { return nil }
func (s *pipeServer) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (s *pipeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[strings.Split(r.URL.Path, "/")[2]]++
	w.WriteHeader(404)
}

// asked returns the number of requested build IDs, and the number of requests.
func (s *pipeServer) asked() (ids, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.ids {
		requests += n
	}
	return len(s.ids), requests
}

// pipeClient returns a client of several servers without a network. Call it in a synctest bubble.
func pipeClient(t *testing.T, o Options, servers int) (*Client, []*pipeServer) {
	var urls []string
	for i := range servers {
		urls = append(urls, fmt.Sprintf("http://%d.test", i))
	}
	c := newClient(t, o, urls...)
	var all []*pipeServer
	for range servers {
		var running sync.WaitGroup
		s := &pipeServer{conns: make(chan net.Conn), done: make(chan struct{}), ids: map[string]int{}}
		all = append(all, s)
		serving := &http.Server{Handler: s}
		running.Go(func() { serving.Serve(s) })
		t.Cleanup(func() { close(s.done); serving.Close(); running.Wait() })
	}
	c.direct.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		all[address[0]-'0'].conns <- theirs
		return ours, nil
	}
	t.Cleanup(func() { c.Close() })
	return c, all
}

// ask asks for a range of build IDs. It returns the number of misses, and the number of IDs that
// were not requested.
func ask(t *testing.T, c *Client, from, to int) (missed, unasked int) {
	t.Helper()
	for n := from; n < to; n++ {
		var notes []string
		_, err := c.Find(t.Context(), query(n), func(a buildid.Attempt) { notes = append(notes, a.Reason) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missed++
		case err != nil && strings.Contains(err.Error(), errTooMany.reason) && len(notes) > 0 && notes[0] == errTooMany.reason:
			unasked++
		default:
			t.Fatalf("build ID %d: got %v, %q", n, err, notes)
		}
	}
	return missed, unasked
}

// In a flood of new build IDs, no server may get requests faster than the rate. IDs that were held
// back must be requested later.
func TestNewBuildIDsAreAskedForAtARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := 0
		c, servers := pipeClient(t, Options{Limited: func(burst, perSecond int) {
			if limited++; burst != 1000 || perSecond != 20 {
				t.Errorf("told of %d and %d a second", burst, perSecond)
			}
		}}, 2)
		for _, step := range []struct {
			wait                time.Duration
			from, to            int
			asked, held, unsent int // totals at the end of the step
		}{
			{0, 0, 3000, 1000, 2000, 2000},
			{0, 0, 1000, 1000, 2000, 0},      // known IDs need no request
			{0, 1000, 1500, 1000, 2000, 500}, // held IDs are counted once
			{10 * time.Second, 1000, 3000, 1200, 1800, 1800},
			{49 * time.Millisecond, 1200, 1300, 1200, 1800, 100},
			{time.Millisecond, 1200, 1300, 1201, 1799, 99},
			{time.Hour, 4000, 5200, 2201, 1999, 200}, // a full burst again, but no more
			{time.Hour, 1201, 1301, 2301, 1899, 0},
		} {
			time.Sleep(step.wait)
			_, unsent := ask(t, c, step.from, step.to)
			for i, s := range servers {
				ids, requests := s.asked()
				got := []int{ids, requests, unsent, c.unasked()}
				if diff := cmp.Diff(got, []int{step.asked, 2 * step.asked, step.unsent, step.held}); diff != "" {
					t.Errorf("after %+v, server %d: asked, requests, refused, held (-got +want):\n%s", step, i, diff)
				}
			}
		}
		if limited != 1 {
			t.Errorf("told %d times that IDs are not asked for", limited)
		}
		if info := c.cache.info(); info.Misses != 2*2301 {
			t.Errorf("got %d misses on disk, want %d", info.Misses, 2*2301)
		}
	})
}

// The build IDs of three programs, with 300 modules each, must be requested at once.
func TestAProgramIsAskedForAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, servers := pipeClient(t, Options{Limited: func(int, int) { t.Error("it is limited") }}, 1)
		for from := 0; from < 900; from += 300 {
			if missed, unasked := ask(t, c, from, from+300); missed != 300 || unasked != 0 {
				t.Errorf("got %d misses and %d that were not asked for", missed, unasked)
			}
		}
		if ids, requests := servers[0].asked(); ids != 900 || requests != 1800 || c.unasked() != 0 {
			t.Errorf("got %d build IDs in %d requests, %d left", ids, requests, c.unasked())
		}
	})
}

// Requests for sections must be limited like requests for files.
func TestSectionsCountAsQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, servers := pipeClient(t, Options{}, 1)
		ask(t, c, 0, newBurst)
		if _, err := c.Section(t.Context(), testID(1), ".debug_line"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a known build ID: got %v, want a miss", err)
		}
		if _, err := c.Section(t.Context(), testID(newBurst), ".debug_line"); !errors.Is(err, errTooMany) {
			t.Errorf("of a new one: got %v, want %v", err, errTooMany)
		}
		if ids, _ := servers[0].asked(); ids != newBurst {
			t.Errorf("got %d build IDs asked for, want %d", ids, newBurst)
		}
	})
}

// The bucket may store only a bounded number of IDs.
func TestTheRateTakesLittleMemory(t *testing.T) {
	var r askRate
	now := time.Unix(1e9, 0)
	for n := range 3 * maxHeld {
		r.admit(testID(n), now)
		now = now.Add(10 * time.Millisecond)
	}
	if len(r.known) != newKnown || len(r.order) != newKnown || r.unasked() != maxHeld {
		t.Errorf("got %d known, %d in order, %d held", len(r.known), len(r.order), r.unasked())
	}
}
