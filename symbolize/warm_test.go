package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

// counted is a Finder that counts the calls of Find.
type counted struct {
	Finder
	asked *int
}

func (c counted) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	*c.asked++
	return c.Finder.Find(ctx, q, note)
}

// A question with Now must open, inflate and parse nothing in the caller. After the background has
// found the answer, Now must return it: from an index, plain or compressed debug information, or
// symbols.
func TestWhatWasWarmedIsKnownAtOnce(t *testing.T) {
	plain := build(t, "shop", source)
	for name, test := range map[string]struct {
		fixture
		o     Options
		index bool
	}{
		"debug information": {fixture: plain},
		"compressed":        {fixture: plain.variant(t, "--compress-debug-sections=zlib")},
		"symbols":           {fixture: plain.variant(t, "--strip-debug")},
		"index":             {fixture: plain, index: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.fixture
			entry := f.at(f.symbols(t)["entry"].Value)
			table := f.at(f.symbols(t)["table"].Value + 4)
			want, err := open(t, Options{}, oneFile{fixture: f}).code(context.Background(), nil, entry)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{}
			if test.index {
				o.IndexDir = t.TempDir()
				if _, err := indexFile(context.Background(), f.path, access.IndexOptions{Dir: o.IndexDir}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				o.Finders = []Finder{counted{oneFile{fixture: f}, &asked}}
				s := New(o)
				defer s.Close()
				if frames, err := s.known(nil, entry); err != ErrPending || len(frames) > 0 {
					t.Errorf("before: got %q, %v, want ErrPending", text(frames), err)
				}
				synctest.Wait() // the search has ended
				e := s.cache.existing(f.id, "")
				e.mu.Lock()
				// only an index can answer now: nothing else was read so far
				if frames, err := s.known(nil, entry); (err == nil) != test.index || (len(frames) > 0) != test.index {
					t.Errorf("while another asks about the file: got %q, %v", text(frames), err)
				}
				if s.cache.memory.sections.Load() != 0 {
					t.Error("sections are inflated")
				}
				if m := e.module; m.dw != nil {
					if steps, _ := m.dw.Spent(); steps != 0 {
						t.Errorf("debug information was read in %d steps", steps)
					}
				}
				e.mu.Unlock()

				again := entry
				if !s.warmer.send(newErrand(codeErrand, entry)) || !s.warmer.send(newErrand(codeErrand, again)) || !s.warmer.send(newErrand(dataErrand, table)) {
					t.Error("there is no room for three questions")
				}
				synctest.Wait()
				e.mu.Lock() // a question that waits for the file would block
				defer e.mu.Unlock()
				frames, err := s.known(nil, entry)
				for i := range frames {
					frames[i].Until = time.Time{}
				}
				for i := range want {
					want[i].Until = time.Time{}
				}
				if err != nil || !slices.Equal(frames, want) {
					t.Errorf("afterwards: got %q, %v, want %q", text(frames), err, text(want))
				}
				if v, err := s.knownData(table); err != nil || v.Name != "table" || v.Offset != 4 {
					t.Errorf("got the variable %+v, %v, want table and 4 bytes", v, err)
				}
				if e.module.dw != nil {
					e.module.dw.Spent()
				}
				before := e.module.lookups
				dst := make([]Frame, 0, 8)
				if n := testing.AllocsPerRun(100, func() { dst, _ = s.known(dst[:0], entry) }); n != 0 {
					t.Errorf("an answer that is known takes %v allocations", n)
				}
				if e.module.dw != nil {
					if steps, _ := e.module.dw.Spent(); steps != 0 {
						t.Errorf("debug information was read in %d steps", steps)
					}
				}
				if e.module.lookups != before || asked != 1 {
					t.Errorf("%d lookups and %d searches, want %d and 1", e.module.lookups, asked, before)
				}
			})
		})
	}
}

// An errand that waits for a search must be repeated when the search ends. Until then, known must
// return the symbols of a file on this machine, and ErrPending.
func TestWarmingWaitsForTheSearch(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	entry := f.at(f.symbols(t)["entry"].Value)
	for name, local := range map[string][]Finder{"nothing here": nil, "symbols here": {oneFile{fixture: stripped}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				came := make(chan struct{})
				server := finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
					<-came
					return oneFile{fixture: f}.Find(ctx, q, note)
				})
				s := New(Options{Finders: local, Servers: []Finder{server}})
				defer s.Close()
				s.warmer.send(newErrand(codeErrand, entry))
				synctest.Wait()
				frames, err := s.known(nil, entry)
				if want := len(local); err != ErrPending || len(frames) != want {
					t.Errorf("meanwhile: got %q, %v, want %d frames and ErrPending", text(frames), err, want)
				}
				close(came)
				synctest.Wait()
				if frames, err := s.known(nil, entry); err != nil || text(frames) != "entry /src/shop.cc:17:35\n" {
					t.Errorf("afterwards: got %q, %v", text(frames), err)
				}
			})
		})
	}
}

// A miss must be returned at once. When another search is due, the next question must start it in
// the background.
func TestAMissIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := New(Options{Finders: []Finder{counted{finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
			return nil, fs.ErrNotExist
		}), &asked}}})
		defer s.Close()
		l := Location{ID: mustID(t, "aa00")}
		s.warmer.search(l.ID, "")
		synctest.Wait()
		for range 3 {
			if _, err := s.known(nil, l); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want a miss", err)
			}
		}
		time.Sleep(retryMiss + 1)
		s.known(nil, l)
		synctest.Wait()
		if asked != 2 {
			t.Errorf("%d searches, want 2", asked)
		}
		s.Close()
		if _, err := s.known(nil, l); !errors.Is(err, ErrClosed) || s.warmer.send(newErrand(codeErrand, l)) {
			t.Errorf("closed: got %v, want ErrClosed", err)
		}
	})
}

// The waiting questions and the bytes of answers are bounded.
func TestWarmingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s := New(Options{MaxMemory: 8 << 20, Finders: []Finder{finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
			<-free
			return nil, fs.ErrNotExist
		})}})
		defer s.Close()
		id := mustID(t, "aa00")
		e, err := s.cache.entry(id, "")
		if err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		taken := 0
		for i := range 3 * maxErrands {
			if s.warmer.send(newErrand(codeErrand, Location{ID: id, Addr: uint64(i)})) {
				taken++
			}
		}
		if taken > maxErrands+maxWarmers || taken < maxErrands {
			t.Errorf("%d questions wait, want %d", taken, maxErrands)
		}
		e.mu.Unlock()
		synctest.Wait()
		e.mu.Lock()
		if len(e.parked) != maxParked {
			t.Errorf("%d questions wait for a file, want %d", len(e.parked), maxParked)
		}
		e.mu.Unlock()
		close(free)
		synctest.Wait()
		k := errandKey{of: key{id: id}}
		for i := range 100_000 {
			k.addr = uint64(i)
			s.cache.memory.heap.Add(s.warmer.keep(k, warmAnswer{frames: make([]Frame, 1)}))
		}
		if n := s.warmer.size + s.warmer.oldSize; n > 2*(8<<20)/warmShare || s.cache.memory.heap.Load() > n+2*entryCost {
			t.Errorf("%d bytes of answers, %d in the ledger", n, s.cache.memory.heap.Load())
		}
	})
}
