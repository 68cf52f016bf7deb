package symbolize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestMemoryStaysWithinItsBudget(t *testing.T) {
	const modules = 24
	dir := t.TempDir()
	var files []fixture
	shop := build(t, "shop", source)
	for i := range modules {
		f := shop.as(t, fmt.Sprintf("shop%d", i))
		f.place(t, dir)
		files = append(files, f)
	}
	free := open(t, Options{}, buildid.NewTree(dir))
	askAll := func(s *Symbolizer, check func()) (answers []string) {
		for range 2 {
			for _, f := range files {
				for _, a := range f.textAddresses(t) {
					answers = append(answers, code(s, f.at(a)))
					check()
				}
			}
		}
		return answers
	}
	want := askAll(free, func() {})
	unbounded := free.cache.held()

	budget := unbounded / 2
	tight := open(t, Options{MaxMemory: budget}, buildid.NewTree(dir))
	most := int64(0)
	got := askAll(tight, func() { most = max(most, tight.cache.held()) })
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("answer %d with %d bytes: got %q, want %q", i, budget, got[i], want[i])
		}
	}
	if slack := unbounded / modules; most > budget+slack {
		t.Errorf("held up to %d bytes, want at most %d and one file's %d; unbounded: %d", most, budget, slack, unbounded)
	}
	if n := tight.cache.memory.mapped.Load(); n == 0 || n > modules {
		t.Errorf("%d files open", n)
	}
}

func TestTheNumberOfMappedFilesIsBounded(t *testing.T) {
	const modules, bound = 12, 4
	dir := t.TempDir()
	var files []fixture
	shop := build(t, "shop", source)
	for i := range modules {
		f := shop.as(t, fmt.Sprintf("shop%d", i))
		f.place(t, dir)
		files = append(files, f)
	}
	s := open(t, Options{}, buildid.NewTree(dir))
	s.cache.memory.maxMapped = bound
	entry := files[0].symbols(t)["entry"].Value
	for range 3 {
		for _, f := range files {
			if got, want := code(s, f.at(entry)), "entry /src/shop.cc:17:35\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := s.cache.memory.mapped.Load(); got > bound {
				t.Fatalf("%d files are mapped, want at most %d", got, bound)
			}
		}
	}
}

// The number of remembered modules must be bounded, even if a log has many build IDs.
func TestTheNumberOfRememberedModulesIsBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	s := open(t, Options{}, buildid.NewTree(t.TempDir()))
	for i := range maxEntries + 5000 {
		if _, err := s.cache.entry(mustID(t, fmt.Sprintf("%08x", i)), "shop.so"); err != nil {
			t.Fatal(err)
		}
		s.cache.clock.Add(1)
	}
	if got := len(s.cache.all()); got > maxEntries {
		t.Errorf("%d are remembered, want at most %d", got, maxEntries)
	}
	for i := range 100 {
		l := Location{ID: mustID(t, fmt.Sprintf("%08x", i)), Name: "shop.so"}
		if got, want := code(s, l), "build ID "+l.ID.String()+": no debug file found"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCompressedDebugInformationBeyondTheBudgetIsNotRead(t *testing.T) {
	f := build(t, "shop", source).variant(t, "--compress-debug-sections=zlib")
	s := open(t, Options{MaxMemory: 1 << 10}, oneFile{f, "here"})
	if got, want := code(s, f.at(f.symbols(t)["entry"].Value)), "entry\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Report(f.id, "").Fault; !strings.Contains(got, "limit") {
		t.Errorf("the report says %q, want the limit", got)
	}
}
