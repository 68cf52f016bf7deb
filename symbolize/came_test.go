package symbolize

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Came must be called once for each file that can answer more than earlier files. It must not be
// called for an equal or a worse file.
func TestFilesThatComeAreReported(t *testing.T) {
	whole := build(t, "shop", source)
	packed := whole.variant(t, "--compress-debug-sections=zlib")
	symbols := whole.variant(t, "--strip-debug")
	dynamic := whole.variant(t, "--strip-all")
	l := whole.at(whole.symbols(t)["entry"].Value)
	for _, test := range []struct {
		name  string
		files []fixture // found by successive searches
		want  []int     // calls so far after each search
	}{
		{"whole", []fixture{whole, whole}, []int{1, 1}},
		{"symbols first", []fixture{symbols, symbols, whole}, []int{1, 1, 2}},
		{"one after the other", []fixture{dynamic, symbols, whole}, []int{1, 2, 3}},
		{"packed, inflated in the background", []fixture{packed}, []int{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var found int
				var mu sync.Mutex // many goroutines call Came
				var ids []buildid.ID
				s := New(Options{
					Came: func(id buildid.ID) {
						mu.Lock()
						defer mu.Unlock()
						ids = append(ids, id)
					},
					Finders: []Finder{finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
						if found == len(test.files) {
							return nil, fs.ErrNotExist
						}
						return oneFile{fixture: test.files[found]}.Find(ctx, q, note)
					})},
				})
				defer s.Close()
				s.cache.memory.inline = 0
				var got []int
				for range test.files {
					s.Ask(context.Background(), nil, l, Policy{})
					synctest.Wait()
					mu.Lock()
					got = append(got, len(ids))
					mu.Unlock()
					found++
					e := s.cache.existing(whole.id, "")
					e.mu.Lock()
					s.cache.suspend(e) // as for lack of memory: the file is opened again
					e.mu.Unlock()
					time.Sleep(betterMax)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%v calls, want %v", got, test.want)
				}
				for _, id := range ids {
					if id != whole.id {
						t.Errorf("called for %v", id)
					}
				}
			})
		})
	}
}

// If a file on this machine answers while a server is queried, Came must be called for it before
// the server's file arrives.
func TestAFileAtHandIsReportedFirst(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var calls atomic.Int32 // many goroutines call Came
		s := New(Options{
			Came:    func(buildid.ID) { calls.Add(1) },
			Finders: []Finder{oneFile{fixture: stripped}},
			Servers: []Finder{finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
				<-answer
				return oneFile{fixture: f}.Find(ctx, q, note)
			})},
		})
		defer s.Close()
		s.Prefetch(f.id, "")
		synctest.Wait()
		if calls := calls.Load(); calls != 1 {
			t.Errorf("%d calls while the server is asked, want 1", calls)
		}
		close(answer)
		synctest.Wait()
		if calls := calls.Load(); calls != 2 {
			t.Errorf("%d calls in all, want 2", calls)
		}
	})
}
