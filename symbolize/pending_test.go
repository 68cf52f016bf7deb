package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// While a slow finder searches, questions that do not wait must be answered from the file that an
// earlier finder found.
func TestAFileAtHandAnswersWhileABetterOneIsAwaited(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	l := f.at(f.symbols(t)["entry"].Value)
	missing := errors.New("HTTP status 500")
	for _, test := range []struct {
		name string
		slow oneFile
		err  error
		then string
		kept time.Duration
	}{
		{name: "found", slow: oneFile{f, "server"}, then: "entry /src/shop.cc:17:35\n", kept: forEver},
		{name: "not there", err: fs.ErrNotExist, then: "entry\n", kept: betterMin},
		{name: "out of order", err: missing, then: "entry\n", kept: betterMin},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				s := New(Options{Finders: []Finder{
					oneFile{stripped, "the module's own path"},
					finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
						select {
						case <-answer:
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						if test.err != nil {
							return nil, test.err
						}
						return test.slow.Find(ctx, q, note)
					}),
				}})
				defer s.Close()
				s.Prefetch(f.id, "")
				synctest.Wait()
				expired, cancel := context.WithCancel(context.Background())
				cancel()
				frames, err := s.Ask(expired, nil, l, Policy{})
				if got := text(frames); err != ErrPending || got != "entry\n" || keptFor(frames) != 0 {
					t.Errorf("at once: got %q, kept for %v, and %v; want the symbol, kept for no time, and ErrPending", got, keptFor(frames), err)
				}
				if v, err := s.AskData(expired, l, Policy{}); err != ErrPending || v.Name != "entry" {
					t.Errorf("data at once: got %+v and %v, want entry and ErrPending", v, err)
				}
				begin := time.Now()
				patient, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				frames, err = s.Ask(patient, nil, l, Policy{})
				if got := text(frames); err != ErrPending || got != "entry\n" || time.Since(begin) != 2*time.Second {
					t.Errorf("got %q and %v after %v, want the symbol and ErrPending after 2s", got, err, time.Since(begin))
				}
				if got := s.cache.memory.mapped.Load(); got != 1 {
					t.Errorf("%d files are open, want 1", got)
				}
				close(answer)
				frames, err = s.Ask(context.Background(), nil, l, Policy{})
				if got := text(frames); err != nil || got != test.then || keptFor(frames) != test.kept {
					t.Errorf("then: got %q, kept for %v, and %v; want %q, kept for %v", got, keptFor(frames), err, test.then, test.kept)
				}
				if got := s.cache.memory.mapped.Load(); got != 1 {
					t.Errorf("then %d files are open, want 1", got)
				}
			})
		})
	}
}

// If the budget closes a provisional file before the search has ended, the next question must
// search for that file again.
func TestAFileAtHandThatWasClosedIsLookedForAgain(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	l := f.at(f.symbols(t)["entry"].Value)
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		s := New(Options{Finders: []Finder{
			oneFile{stripped, "here"},
			finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
				<-answer
				return nil, fs.ErrNotExist
			}),
		}})
		defer s.Close()
		s.Prefetch(f.id, "")
		synctest.Wait()
		e, err := s.cache.entry(f.id, "")
		if err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		s.cache.shut(e)
		e.mu.Unlock()
		close(answer)
		if got := code(s, l); got != "entry\n" {
			t.Errorf("got %q, want the symbol", got)
		}
		if got := s.cache.memory.mapped.Load(); got != 1 {
			t.Errorf("%d files are open, want 1", got)
		}
	})
}

// A question whose context is done must still get an answer from a file that was closed to save
// memory.
func TestReopeningCostsNoPatience(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{f, "here"})
	l := f.at(f.symbols(t)["entry"].Value)
	want := code(s, l)
	e, err := s.cache.entry(f.id, "")
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	s.cache.suspend(e)
	s.cache.suspend(e) // memory may be short again before the next question
	e.mu.Unlock()
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	if frames, err := s.Ask(expired, nil, l, Policy{}); err != nil || text(frames) != want {
		t.Fatalf("got %q, %v, want %q", text(frames), err, want)
	}
}
