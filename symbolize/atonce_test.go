package symbolize

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// Many goroutines query an index, or debug information without an index, while the budget makes the
// Symbolizer drop names and close files. Each answer must equal the answer that one goroutine gets.
// Only tryCode and besideCode may return no answer.
func TestAnswersAtOnceAreThoseOfOneAfterTheOther(t *testing.T) {
	f := build(t, "shop", indexSource, "-O2")
	addrs := f.textAddresses(t)
	addrs = slices.DeleteFunc(addrs, func(a uint64) bool { return a%uint64(fuzztest.LongOr(1, 3)) != 0 })
	want := map[uint64][]Frame{}
	plain := open(t, Options{}, oneFile{fixture: f})
	for _, addr := range addrs {
		frames, err := plain.Ask(context.Background(), nil, Location{ID: f.id, Addr: addr}, Policy{})
		if err != nil {
			t.Fatal(err)
		}
		want[addr] = frames
	}
	dir := t.TempDir()
	if _, err := indexFile(context.Background(), f.path, access.IndexOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"indexed":        {IndexDir: dir},
		"indexed, tight": {IndexDir: dir, MaxMemory: 16 << 10},
		"not indexed":    {},
		"tight":          {MaxMemory: 16 << 10},
		"eight readers":  {Jobs: 8},
		"eight, tight":   {Jobs: 8, MaxMemory: 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, o, oneFile{fixture: f})
			if _, ok := s.tryCode(nil, Location{ID: f.id, Addr: addrs[0]}); ok {
				t.Error("a file that nobody asked for answers at once")
			}
			if _, err := s.Ask(context.Background(), nil, Location{ID: f.id, Addr: addrs[0]}, Policy{}); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			atOnceInAll := 0
			for i := range 4 {
				all.Go(func() {
					atOnce := 0
					for j := range addrs {
						addr := addrs[(j*7+i*len(addrs)/4)%len(addrs)]
						l := Location{ID: f.id, Addr: addr}
						if got, ok := s.besideCode(nil, l); ok && !slices.Equal(got, want[addr]) {
							t.Errorf("%#x beside others: got %v, want %v", addr, got, want[addr])
							return
						}
						if got, ok := s.tryCode(nil, l); ok {
							atOnce++
							if !slices.Equal(got, want[addr]) {
								t.Errorf("%#x at once: got %v, want %v", addr, got, want[addr])
								return
							}
						}
						if got, err := s.Ask(context.Background(), nil, l, Policy{}); err != nil || !slices.Equal(got, want[addr]) {
							t.Errorf("%#x: got %v, %v, want %v", addr, got, err, want[addr])
							return
						}
					}
					mu.Lock()
					defer mu.Unlock()
					atOnceInAll += atOnce
				})
			}
			all.Wait()
			if atOnceInAll == 0 && !t.Failed() {
				t.Error("nothing was answered at once")
			}
			s.Close()
			if _, ok := s.tryCode(nil, Location{ID: f.id, Addr: addrs[0]}); ok {
				t.Error("a closed Symbolizer answers")
			}
			if _, err := s.Ask(context.Background(), nil, Location{ID: f.id, Addr: addrs[0]}, Policy{}); !errors.Is(err, ErrClosed) {
				t.Errorf("a closed Symbolizer says %v", err)
			}
		})
	}
}
