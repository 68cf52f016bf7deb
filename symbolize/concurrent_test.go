package symbolize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// blocked is a finder that searches until its context ends.
func blocked(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestManyAskAtOnce(t *testing.T) {
	const modules, askers = 6, 64
	questions := fuzztest.LongOr(300, 60)
	dir := t.TempDir()
	var files []fixture
	want := make(map[Location]string)
	var all []Location
	shop := build(t, "shop", source)
	for i := range modules {
		f := shop.as(t, fmt.Sprintf("shop%d", i))
		f.place(t, dir)
		files = append(files, f)
		alone := open(t, Options{}, oneFile{f, "here"})
		for _, a := range f.textAddresses(t) {
			want[f.at(a)] = code(alone, f.at(a))
			all = append(all, f.at(a))
		}
	}
	for _, budget := range []int64{1, 64 << 10, DefaultMaxMemory} {
		t.Run(fmt.Sprintf("with %d bytes", budget), func(t *testing.T) {
			s := open(t, Options{MaxMemory: budget}, buildid.NewTree(dir))
			var wg sync.WaitGroup
			for asker := range askers {
				wg.Go(func() {
					s.Prefetch(files[asker%modules].id, "shop.so")
					for i := range questions {
						l := all[(asker*7919+i*104729)%len(all)]
						if got := code(s, l); got != want[l] {
							t.Errorf("%v:\n got %q\nwant %q", l, got, want[l])
							return
						}
						if i%16 == 0 {
							s.AskData(context.Background(), l, Policy{})
							s.Report(l.ID, l.Name)
							s.Demangle(fmt.Sprintf("_Z%d%svv", 4, "name"))
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestAFileIsLookedForOnce(t *testing.T) {
	f := build(t, "shop", source)
	var asked atomic.Int64
	s := open(t, Options{}, finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
		asked.Add(1)
		return oneFile{f, "here"}.Find(ctx, q, note)
	}))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			s.Prefetch(f.id, "shop.so")
			code(s, f.at(0))
		})
	}
	wg.Wait()
	if got := asked.Load(); got != 1 {
		t.Errorf("the finder was asked %d times, want 1", got)
	}
}

func TestCodeDoesNotWaitBeyondItsContext(t *testing.T) {
	f := fixture{id: mustID(t, "aabb")}
	s := open(t, Options{}, finderFunc(blocked))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Ask(ctx, nil, f.at(0), Policy{}); err != ErrPending {
		t.Errorf("Code: got %v, want %v", err, ErrPending)
	}
	if _, err := s.AskData(ctx, f.at(0), Policy{}); err != ErrPending {
		t.Errorf("Data: got %v, want %v", err, ErrPending)
	}
	if r := s.Report(f.id, ""); !r.Pending {
		t.Error("the report does not say that the file is being looked for")
	}
}

func TestCloseEndsTheLooking(t *testing.T) {
	f := fixture{id: mustID(t, "aabb")}
	s := New(Options{Finders: []Finder{finderFunc(blocked)}})
	s.Prefetch(f.id, "shop.so")
	answered := make(chan error)
	go func() {
		_, err := s.Ask(context.Background(), nil, f.at(0), Policy{})
		answered <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != ErrClosed {
		t.Errorf("a question that waited: got %v, want %v", err, ErrClosed)
	}
	if _, err := s.Ask(context.Background(), nil, f.at(0), Policy{}); err != ErrClosed {
		t.Errorf("a question afterwards: got %v, want %v", err, ErrClosed)
	}
	s.Prefetch(f.id, "shop.so")
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestAnswersOutliveTheFile(t *testing.T) {
	f := build(t, "shop", source)
	s := New(Options{Finders: []Finder{oneFile{f, "here"}}})
	frames, err := s.Ask(context.Background(), nil, f.at(f.symbols(t)["entry"].Value), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := text(frames), "entry /src/shop.cc:17:35\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFindersTroubleIsToldAndIsNoFile(t *testing.T) {
	f := fixture{id: mustID(t, "aabb")}
	trouble := errors.New("the server is on fire")
	s := open(t, Options{}, finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
		return nil, trouble
	}))
	_, err := s.Ask(context.Background(), nil, f.at(0), Policy{})
	if !errors.Is(err, trouble) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error that wraps both %v and %v", err, trouble, fs.ErrNotExist)
	}
}

func TestAFinderThatPanicsFindsNothing(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{},
		finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
			panic("hostile headers")
		}),
		oneFile{f, "here"})
	if got, want := code(s, f.at(f.symbols(t)["entry"].Value)), "entry /src/shop.cc:17:35\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	other := fixture{id: mustID(t, "aabb")}
	if _, err := s.Ask(context.Background(), nil, other.at(0), Policy{}); !errors.Is(err, errPanic) {
		t.Errorf("got %v, want %v", err, errPanic)
	}
}

func mustID(t testing.TB, hex string) buildid.ID {
	t.Helper()
	id, err := buildid.Parse([]byte(hex))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
