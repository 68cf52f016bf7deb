package symbolize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Frames of entry in a file made by large, from debug information and from symbols.
const (
	entryLine   = "entry /src/shop.cc:17:35\n"
	entrySymbol = "entry\n"
	largeBytes  = 3 << 20
)

// large returns a library with compressed debug sections that inflate to about 3 MiB.
func large(t *testing.T) fixture {
	t.Helper()
	return build(t, "shop", source).padded(t, ".debug_addr", largeBytes).variant(t, "--compress-debug-sections=zlib")
}

// padded returns a copy of f with another section of this many bytes, to which no unit refers.
func (f fixture) padded(t *testing.T, section string, bytes int) fixture {
	t.Helper()
	padding := filepath.Join(t.TempDir(), "padding")
	var text strings.Builder
	for i := uint64(0); text.Len() < bytes; i++ { // varied text: an implausible compression ratio would be refused
		text.WriteString(strings.Repeat(fmt.Sprintf("no unit refers to %014x", i*0x9e3779b97f4a7c15>>8), 16))
	}
	if err := os.WriteFile(padding, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return f.variant(t, "--add-section", section+"="+padding)
}

// placed returns copies of f with other build IDs, in a tree.
func placed(t *testing.T, f fixture, n int) (files []fixture, tree *buildid.Tree) {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		c := f.as(t, "shop"+string(rune('a'+i)))
		c.place(t, dir)
		files = append(files, c)
	}
	return files, buildid.NewTree(dir)
}

// Many streams ask about different files, of which only two fit into memory. Debug information must
// answer in all streams, and all inflated sections together must stay within the budget.
func TestAllSectionsTogetherStayWithinTheBudget(t *testing.T) {
	const streams, questions, budget = 6, 5, 8 << 20
	files, tree := placed(t, large(t), streams)
	addr := files[0].symbols(t)["entry"].Value
	for _, tt := range []struct {
		name   string
		spills bool
	}{
		{"waiting for each other", false},
		{"in files", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{MaxMemory: budget}
			if tt.spills {
				o.SpillDir = t.TempDir()
			}
			s := open(t, o, tree)
			s.cache.memory.inline = 0
			var all sync.WaitGroup
			for _, f := range files {
				all.Go(func() {
					for range questions {
						if got := code(s, f.at(addr)); got != entryLine {
							t.Errorf("got %q, want %q: %s", got, entryLine, s.Report(f.id, "").Fault)
						}
					}
				})
			}
			all.Wait()
			if most := s.cache.memory.most; most > budget || most < largeBytes {
				t.Errorf("%d bytes were held at most, of %d", most, budget)
			}
			s.Close()
			if n := s.cache.memory.sections.Load(); n != 0 {
				t.Errorf("%d bytes are granted after Close", n)
			}
		})
	}
}

// While sections are inflated, questions that do not wait must get answers from symbols. Questions
// that wait must get answers from debug information.
func TestInflatingHoldsUpNobodyWhoDoesNotWait(t *testing.T) {
	f := large(t)
	s := open(t, Options{}, oneFile{f, "here"})
	s.cache.memory.inline = 0
	l := f.at(f.symbols(t)["entry"].Value)
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	for e, _ := s.cache.entry(l.ID, l.Name); ; {
		frames, err := s.Ask(expired, nil, l, Policy{})
		e.mu.Lock()
		m := e.module
		packed := m != nil && m.packed
		e.mu.Unlock()
		if got := text(frames); err == nil && got == entryLine {
			break // the sections have been inflated meanwhile
		} else if !errors.Is(err, ErrPending) || m != nil && packed && got != entrySymbol && got != "" {
			t.Fatalf("got %q, %v; want %q and that more is on its way", got, err, entrySymbol)
		}
		if packed {
			if _, ok := s.tryCode(nil, l); ok {
				t.Error("packed debug information answers at once")
			}
		}
		if got := code(s, l); got != entryLine {
			t.Fatalf("who waits got %q, want %q", got, entryLine)
		}
	}
}

// An answer from symbols while sections are inflated expires at once.
func TestAnswersWhileInflatingExpire(t *testing.T) {
	f := large(t)
	l := f.at(f.symbols(t)["entry"].Value)
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Finders: []Finder{oneFile{f, "here"}}})
		defer s.Close()
		s.cache.memory.inline = 0
		expired, cancel := context.WithCancel(context.Background())
		cancel()
		ask := func(want string, pending bool) {
			t.Helper()
			frames, err := s.Ask(expired, nil, l, Policy{})
			if got := text(frames); got != want || errors.Is(err, ErrPending) != pending {
				t.Errorf("got %q, %v; want %q, pending %v", got, err, want, pending)
			}
			if len(frames) > 0 && frames[0].Until.IsZero() == pending {
				t.Errorf("%q expires at %v, pending %v", want, frames[0].Until, pending)
			}
			synctest.Wait()
		}
		for range maxInflating { // no further file can be inflated
			s.cache.memory.running <- struct{}{}
		}
		s.Prefetch(f.id, "") // an expired question may end before or after the search
		synctest.Wait()
		ask(entrySymbol, true)
		ask(entrySymbol, true)
		for range maxInflating {
			<-s.cache.memory.running
		}
		synctest.Wait()
		ask(entryLine, false)
	})
}

// A file without memory for its sections must answer from its symbols and report the reason. Its
// debug information must be tried again after betterMin.
func TestFilesWithoutMemoryAnswerBySymbols(t *testing.T) {
	f := large(t)
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		s := New(Options{MaxMemory: 8 << 20, Finders: []Finder{oneFile{f, "here"}}, Notify: func(msg string) { notes = append(notes, msg) }})
		defer s.Close()
		l := f.at(f.symbols(t)["entry"].Value)
		held := s.cache.memory.limit() - s.cache.memory.held() - largeBytes/2
		if !s.cache.memory.take(held, &s.cache.memory.work) {
			t.Fatal("an empty ledger grants nothing")
		}
		for range 3 {
			if got := code(s, l); got != entrySymbol {
				t.Errorf("without memory: got %q, want %q", got, entrySymbol)
			}
		}
		const why, help = "the compressed debug information needs 3 MiB of memory: not enough memory at the moment", "objcopy --decompress-debug-sections"
		if got := s.Report(f.id, "").Fault; !strings.Contains(got, why) || !strings.Contains(got, help) {
			t.Errorf("the report says %q", got)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], why) {
			t.Errorf("notified of %q, want one message", notes)
		}
		s.cache.memory.give(held, &s.cache.memory.work)
		time.Sleep(betterMin + 1)
		code(s, l)
		synctest.Wait()
		if got := code(s, l); got != entryLine {
			t.Errorf("with memory: got %q, want %q: %s", got, entryLine, s.Report(f.id, "").Fault)
		}
	})
}

// Two files that do not fit into memory together may evict each other only until maxCrowded is
// reached.
func TestFilesAreNotInflatedAgainAndAgain(t *testing.T) {
	files, tree := placed(t, large(t), 2)
	addr := files[0].symbols(t)["entry"].Value
	s := open(t, Options{MaxMemory: largeBytes * 3 / 2}, tree)
	lines, symbols := 0, 0
	for i := range 26 {
		if i == 20 { // reaching the limit by questions would take minutes
			for _, f := range files {
				e, _ := s.cache.entry(f.id, "")
				e.crowded += maxCrowded
			}
		}
		for _, f := range files {
			switch got := code(s, f.at(addr)); got {
			case entryLine:
				lines++
			case entrySymbol:
				symbols++
			default:
				t.Fatalf("got %q", got)
			}
		}
	}
	if lines < 40 || symbols == 0 {
		t.Errorf("%d answers by debug information, %d by symbols", lines, symbols)
	}
	fault := s.Report(files[0].id, "").Fault + s.Report(files[1].id, "").Fault
	if !strings.Contains(fault, errCrowded.Error()) {
		t.Errorf("the reports say %q", fault)
	}
}

// If the spill directory is in memory, no section may be inflated into it, and the Report must give
// the reason. Indexes in such a directory must reduce the budget.
func TestADirectoryInMemoryIsNoPlaceToSpillTo(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "symfilter-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	f := large(t)
	s := open(t, Options{MaxMemory: largeBytes, SpillDir: dir, IndexDir: dir}, oneFile{f, "here"})
	if got := code(s, f.at(f.symbols(t)["entry"].Value)); got != entrySymbol {
		t.Errorf("got %q, want %q", got, entrySymbol)
	}
	if got := s.Report(f.id, "").Fault; !strings.Contains(got, dir+" is itself in memory, so nothing is inflated into it") {
		t.Errorf("the report says %q", got)
	}
	for _, tt := range []struct{ budget, want int64 }{
		{0, largeBytes / 8},
		{1 << 40, largeBytes / 8},
		{largeBytes / 8, largeBytes / 8},
		{4096, 4096},
	} {
		s := open(t, Options{MaxMemory: largeBytes, IndexDir: dir, IndexBudget: tt.budget})
		if got := s.o.IndexBudget; got != tt.want {
			t.Errorf("with a budget of %d indexes may take %d bytes there, want %d", tt.budget, got, tt.want)
		}
		if got, want := s.cache.memory.budget, largeBytes-tt.want; got != want {
			t.Errorf("with a budget of %d for indexes %d bytes are left for the rest, want %d", tt.budget, got, want)
		}
	}
}

// OffHeap must be called with the number of bytes outside of the Go heap, but not after small
// changes.
func TestBytesOutsideOfTheHeapAreTold(t *testing.T) {
	var told []int64
	s := New(Options{OffHeap: func(n int64) { told = append(told, n) }})
	if s.cache.memory.outside.report == nil {
		t.Skip("all is on the heap here")
	}
	for _, n := range []int64{1 << 20, 16 << 20, 2 << 20} {
		if err := s.cache.takeNow(n); err != nil {
			t.Fatal(err)
		}
	}
	s.cache.give(18 << 20)
	s.Close()
	if len(told) != 2 || told[0] != 17<<20 || told[1] != 1<<20 {
		t.Errorf("told %v, want 17 and 1 MiB: small changes need not be", told)
	}
}
