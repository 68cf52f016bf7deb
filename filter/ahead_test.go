package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/symbolize"
)

// manyFrames returns a log of three blocks, each long enough to be resolved ahead. Its frames have
// random addresses in modules with the given build IDs. The modules change every 1,500 lines.
func manyFrames(r *rand.Rand, ids []string) (blocks []string) {
	for range 3 {
		var b strings.Builder
		for line := 0; b.Len() < 128<<10; line++ {
			if line%1500 == 0 {
				b.WriteString("{{{reset}}}\n")
				for i := range ids {
					id := ids[(i+line/1500)%len(ids)]
					fmt.Fprintf(&b, "{{{module:%d:m%d:elf:%s}}}\n{{{mmap:%#x:0x2000:load:%d:rx:0x1000}}}\n", i, i, id, 0x10000*(i+1), i)
				}
			}
			addr := 0x10000*(1+r.IntN(len(ids))) + r.IntN(0x1400)
			fmt.Fprintf(&b, "[%d] {{{bt:%d:%#x%s}}}\n", line, r.IntN(3), addr, []string{"", ":ra", ":pc"}[r.IntN(3)])
		}
		blocks = append(blocks, b.String())
	}
	return blocks
}

// testdataSymbolizer returns a Symbolizer with indexes of the debug files in testdata, and their
// build IDs.
func testdataSymbolizer(t *testing.T) (*symbolize.Symbolizer, []string) {
	t.Helper()
	files, err := filepath.Glob("../testdata/debug/.build-id/*/*.debug")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	index := t.TempDir()
	var ids []string
	for _, file := range files {
		done, err := access.IndexFile(t.Context(), file, access.IndexOptions{Dir: index})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, done.ID)
	}
	s := symbolize.New(symbolize.Options{IndexDir: index, Finders: []symbolize.Finder{buildid.NewTree("../testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s, ids
}

// The output must be the same with and without the look-ahead, in every format, even if modules
// change within a block.
func TestResolvingAheadChangesNothing(t *testing.T) {
	s, ids := testdataSymbolizer(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))

	for seed := range uint64(4) {
		blocks := manyFrames(rand.New(rand.NewPCG(seed, 0)), ids)
		o := Options{Symbolizer: s, Patience: patient, Output: []Output{Text, JSON}[seed%2], Color: []Color{ColorKeep, ColorAlways}[seed/2%2]}
		filtered := func(procs int, budget int64) string {
			runtime.GOMAXPROCS(procs)
			o.Cache = NewCache(budget)
			var b bytes.Buffer
			f := New(&b, o)
			for _, block := range blocks {
				f.Write([]byte(block))
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if procs == 1 && f.ahead != nil {
				t.Error("one processor resolves ahead")
			}
			return b.String()
		}
		want := filtered(1, 0)
		if n := strings.Count(want, ".c"); n < 1000 {
			t.Fatalf("%d lines are known:\n%.1000s", n, want)
		}
		for _, budget := range []int64{0, 64 << 10} {
			if got := filtered(4, budget); got != want {
				t.Fatalf("seed %d, a cache of %d bytes: -got +want\n%s", seed, budget, cmp.Diff(got, want))
			}
		}
	}

	runtime.GOMAXPROCS(4)
	blocks := manyFrames(rand.New(rand.NewPCG(0, 0)), ids)
	f := New(io.Discard, Options{Symbolizer: s, Patience: patient})
	f.Write([]byte(blocks[0]))
	f.lookAhead([]byte(blocks[1]))
	f.ahead.ended.Wait() // on a busy machine the filter may be faster than the ahead
	n := 0
	for _, w := range f.ahead.workers {
		n += w.rendered
	}
	if n == 0 {
		t.Error("nothing was resolved ahead")
	}
}

// The space must not change while workers read it: the race detector would report that. In the log,
// mmap elements follow frames in the same line, and workers may resolve these frames ahead.
func TestNothingIsResolvedAheadWhileTheSpaceChanges(t *testing.T) {
	s, ids := testdataSymbolizer(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, how := range []ModuleLines{ModuleLinesFull, ModuleLinesRaw} {
		r := rand.New(rand.NewPCG(uint64(how), 0))
		var b strings.Builder
		for i, id := range ids {
			fmt.Fprintf(&b, "{{{module:%d:m%d:elf:%s}}}\n{{{mmap:%#x:0x2000:load:%d:rx:0x1000}}}\n", i, i, id, 0x10000*(i+1), i)
		}
		for line := range 50 {
			for i := range 60 {
				fmt.Fprintf(&b, "{{{bt:%d:%#x:pc}}}", i, 0x10000*(1+r.IntN(len(ids)))+r.IntN(0x1400))
			}
			fmt.Fprintf(&b, "{{{mmap:%#x:0x1000:load:0:rx:0x1000}}}\n", 0x1000000+line<<12)
		}
		f := New(io.Discard, Options{Symbolizer: s, Patience: patient, ModuleLines: how})
		io.WriteString(f, b.String())
		if err := f.Close(); err != nil || len(f.ahead.workers) == 0 {
			t.Errorf("%v: %d workers, %v", how, len(f.ahead.workers), err)
		}
	}
}

// The answers found ahead for one block must take at most 1/aheadShare of the Cache's budget.
func TestWhatIsFoundAheadIsBounded(t *testing.T) {
	a := &ahead{block: []byte("{{{bt:0:0x5ffff0:pc}}}\n"), part: aheadLeast, cached: NewCache(4000)}
	a.size.Store(1001)
	a.left.Store(int64(len(a.block)))
	w := &aheadWorker{of: a, asker: asker{cached: a.cached}}
	w.run()
	if len(w.keys) != 0 {
		t.Errorf("got %v", w.keys)
	}
}

func TestThatNoSymbolCoversAnAddressIsRemembered(t *testing.T) {
	f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Patience: patient})
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x100000:load:0:rx:0x400000}}}\n")
	const frame = "{{{bt:0:0x5ffff0:pc}}}\n"
	for i := range 3 {
		io.WriteString(f, frame)
		if _, n := f.Unresolved(); n != int64(i+1) {
			t.Errorf("%d elements stayed unresolved, want %d", n, i+1)
		}
		r, ok := f.cached.get(f.key(f.last.mod, f.last.rel, exactAddress))
		if !ok || !r.none || !f.stillBest(&r) {
			t.Errorf("got %+v, %v", r, ok)
		}
	}
}
