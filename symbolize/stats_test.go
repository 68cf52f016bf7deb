package symbolize

import (
	"context"
	"io/fs"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

// Stats counts questions, files, misses and closed files.
func TestStats(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.at(f.symbols(t)["entry"].Value)
	missed := Location{ID: mustID(t, "aa00")}
	dir := t.TempDir()
	if _, err := indexFile(context.Background(), f.path, access.IndexOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		s := New(Options{IndexDir: dir, MaxMemory: 64 << 20, Finders: []Finder{finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
			switch q.ID {
			case f.id:
				return oneFile{fixture: f}.Find(ctx, q, note)
			case missed.ID:
				return nil, fs.ErrNotExist
			}
			<-wait
			return nil, fs.ErrNotExist
		})}})
		defer s.Close()
		ctx := context.Background()
		s.Ask(ctx, nil, missed, Policy{})
		for range 3 {
			s.Ask(ctx, nil, entry, Policy{})
		}
		s.Prefetch(mustID(t, "bb00"), "")
		e := s.cache.existing(f.id, "")
		e.mu.Lock()
		busy := s.Stats().Busy
		s.cache.suspend(e)
		e.mu.Unlock()
		idle := s.Stats().Idle
		s.Ask(ctx, nil, entry, Policy{})
		synctest.Wait()
		got := s.Stats()
		want := Stats{
			Answering: 1, Searching: 1, Missing: 1, OpenFiles: got.OpenFiles, Budget: got.Budget,
			Questions: got.Questions, IndexHits: 2, Searches: 4, Closed: 1,
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Stats{}, "HeapBytes")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got.HeapBytes == 0 || got.HeapBytes > got.Budget || got.OpenFiles != 1 || got.Questions < 5 || busy != 1 || idle != 1 {
			t.Errorf("%+v; %d busy and %d idle before", got, busy, idle)
		}
		close(wait)
	})
}
