package symbolize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

func TestALateFileReplacesAWorseOne(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	entry := f.symbols(t)["entry"].Value
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := New(Options{Finders: []Finder{buildid.NewTree(dir), oneFile{stripped, "the module's own path"}}})
		defer s.Close()
		ask := func(when, want string, keep time.Duration) {
			t.Helper()
			frames, err := s.Ask(context.Background(), nil, f.at(entry), Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if got := text(frames); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
			if got := keptFor(frames); got != keep {
				t.Errorf("%s: may be kept for %v, want %v", when, got, keep)
			}
			if keep == 0 {
				return // the search may have ended meanwhile
			}
			v, err := s.AskData(context.Background(), f.at(entry), Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if got := keptFor([]Frame{{Until: v.Until}}); got != keep {
				t.Errorf("%s: the variable may be kept for %v, want %v", when, got, keep)
			}
		}
		ask("the stripped one", "entry\n", betterMin)
		f.place(t, dir)
		time.Sleep(betterMin - time.Second)
		ask("early", "entry\n", time.Second)
		time.Sleep(time.Second + 1)
		ask("looking is in the background", "entry\n", 0)
		synctest.Wait()
		ask("then", "entry /src/shop.cc:17:35\n", forEver)
		if r := s.Report(f.id, ""); !strings.HasPrefix(r.Path, dir) || s.cache.memory.mapped.Load() != 1 {
			t.Errorf("%d files are open and %s is used, want one in %s", s.cache.memory.mapped.Load(), r.Path, dir)
		}
	})
}

// forEver is the value that keptFor returns for an answer that does not expire.
const forEver = -1

// keptFor returns how long the answer frames may be kept, from now on.
func keptFor(frames []Frame) time.Duration {
	until := frames[0].Until
	for _, f := range frames {
		if f.Until != until {
			panic("frames of one answer differ")
		}
	}
	if until.IsZero() {
		return forEver
	}
	return max(0, time.Until(until))
}

func TestABetterFileIsLookedForRarely(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var searches []string
		s := New(Options{Finders: []Finder{finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
			searches = append(searches, time.Since(begin).Truncate(time.Second).String())
			return oneFile{stripped, "here"}.Find(ctx, q, note)
		})}})
		defer s.Close()
		for range 200 {
			if _, err := s.Ask(context.Background(), nil, f.at(0), Policy{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + 1)
			synctest.Wait()
		}
		want := []string{"0s", "5s", "15s", "35s", "1m15s", "2m15s", "3m15s"}
		if diff := cmp.Diff(searches, want); diff != "" {
			t.Errorf("searches at (-got +want):\n%s", diff)
		}
		if got := s.cache.memory.mapped.Load(); got != 1 {
			t.Errorf("%d files are open, want 1", got)
		}
	})
}

func TestWhatWasWrongWithAFileIsKnownWhenItIsGone(t *testing.T) {
	f := build(t, "shop", source)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := f.place(t, dir)
		s := New(Options{Finders: []Finder{buildid.NewTree(dir)}})
		s.cache.memory.wholeUpTo = 0 // a file that was read whole cannot shrink
		defer s.Close()
		entry := f.symbols(t)["entry"].Value
		code(s, f.at(entry))
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
		code(s, f.at(entry))
		time.Sleep(retryMiss + 1)
		code(s, f.at(entry))
		synctest.Wait()
		want := path + ": " + object.ErrFault.Error()
		if got := s.Report(f.id, "").Fault; got != want {
			t.Errorf("after the next search: got %q, want %q", got, want)
		}
		copyFile(t, path, f.path)
		time.Sleep(retryMiss + 1)
		code(s, f.at(entry))
		synctest.Wait()
		if got := s.Report(f.id, ""); got.Fault != "" || got.Path != path {
			t.Errorf("with a whole file: got %q for %q, want nothing", got.Fault, got.Path)
		}
	})
}

// A module must keep its strikes if its file is closed for lack of memory, so that its debug
// information is not tried again early.
func TestStrikesOutliveTheOpenFile(t *testing.T) {
	f := build(t, "shop", source)
	const line, symbol = "entry /src/shop.cc:17:35\n", "entry\n"
	l := f.at(f.symbols(t)["entry"].Value)
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Finders: []Finder{oneFile{f, "here"}}})
		defer s.Close()
		ask := func() question {
			t.Helper()
			q, err := s.acquire(context.Background(), l)
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		shut := func() {
			e := ask().e
			s.cache.shut(e)
			e.mu.Unlock()
		}
		strike := func(err error) {
			q := ask()
			q.struck = err
			q.judge()
			q.end(nil)
		}
		later := func(d time.Duration) {
			time.Sleep(d + 1)
			code(s, l) // starts a search if one is due
			synctest.Wait()
		}
		expect := func(when, want string) {
			t.Helper()
			if got := code(s, l); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		tooLong := errors.New("took too long")
		strike(tooLong)
		expect("after one strike", line)
		shut()
		strike(tooLong)
		expect("after another", symbol)
		if got, want := s.Report(f.id, "").Fault, f.path+": took too long; answering from symbols only"; got != want {
			t.Errorf("the report says %q, want %q", got, want)
		}
		shut()
		expect("opened again", symbol)
		later(asideMin - 2*betterMax)
		expect("early", symbol)
		later(2 * betterMax)
		expect("after the time", line)
		strike(tooLong)
		expect("after the third", symbol)
		later(asideMin)
		expect("after the time of the second", symbol)
		later(asideMin)
		later(betterMax)
		expect("after twice the time", line)
		strike(fmt.Errorf("%w: index out of range", errPanic))
		expect("after a panic", symbol)
	})
}

// The memory for modules without a file must be bounded, even if a log lists many modules with long
// names.
func TestModulesWithoutAFileStayWithinTheBudget(t *testing.T) {
	fuzztest.WithoutRace(t)
	const budget, modules, nameBytes = 4 << 20, 6000, 15000
	s := open(t, Options{MaxMemory: budget}, buildid.NewTree(t.TempDir()), buildid.ModulePath{})
	before := heap()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range modules {
		name := fmt.Sprintf("%s%d", strings.Repeat("n", nameBytes), i)
		id := mustID(t, fmt.Sprintf("%08x", i+1))
		s.Prefetch(id, name)
		s.Ask(ctx, nil, Location{ID: id, Name: name}, Policy{})
		s.Ask(ctx, nil, Location{Name: name}, Policy{})
		s.Ask(ctx, nil, Location{Name: fmt.Sprint(i) + name}, Policy{})
	}
	for _, e := range s.cache.all() {
		e.mu.Lock()
		task := e.task
		e.mu.Unlock()
		if task != nil {
			<-task.done
		}
	}
	s.cache.relieve()
	if got := s.cache.held(); got > budget {
		t.Errorf("%d bytes are counted, want at most %d", got, budget)
	}
	const queued = maxQueued * 3 * maxModuleName // names in tasks when the budget is exceeded
	if got := heap() - before; got > budget+queued {
		t.Errorf("%d bytes are held, want at most %d", got, budget+queued)
	}
	var sum int64
	for _, e := range s.cache.all() {
		sum += e.heap
	}
	if got := s.cache.memory.heap.Load(); got != sum {
		t.Errorf("the sum says %d bytes, the entries %d", got, sum)
	}
	runtime.KeepAlive(s)
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAFinderOutOfOrderIsAskedEverLess(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"not there", fs.ErrNotExist, []string{"0s", "3s", "6s", "9s", "12s", "15s", "18s", "21s", "24s", "27s"}},
		{"out of order", errors.New("HTTP status 503"), []string{"0s", "3s", "8s", "17s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var searches []string
				s := New(Options{Finders: []Finder{finderFunc(func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
					searches = append(searches, fmt.Sprint(time.Since(begin)))
					return nil, test.err
				})}})
				defer s.Close()
				for range 30 {
					s.Ask(context.Background(), nil, Location{ID: mustID(t, "aabb")}, Policy{})
					synctest.Wait()
					time.Sleep(time.Second)
				}
				if diff := cmp.Diff(searches, test.want); diff != "" {
					t.Errorf("searches at (-got +want):\n%s", diff)
				}
			})
		})
	}
}
