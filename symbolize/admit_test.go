package symbolize

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/idtest"
)

// openIn reports whether f's file is open in s, and how many times its sections were evicted.
func openIn(t *testing.T, s *Symbolizer, f fixture) (open bool, evicted int32) {
	t.Helper()
	e, err := s.cache.entry(f.id, "")
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.module != nil, e.evicted.Load()
}

// pinned pins f's open file, as the goroutine that makes its index does.
func pinned(t *testing.T, s *Symbolizer, f fixture) *pin {
	t.Helper()
	e, err := s.cache.entry(f.id, "")
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &pin{held: true}
	e.module.pin = p
	return p
}

// A file must stay open while its index is made, since closing the file would free no memory.
// Another file that needs this memory must wait until the index is complete.
func TestAFileIsNotEvictedWhileItsIndexIsMade(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inline int64
	}{
		{"for what is inflated while a line waits", maxInline},
		{"for what is inflated in the background", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, tree := placed(t, large(t), 2)
			indexed, newcomer := files[0], files[1]
			addr := indexed.symbols(t)["entry"].Value
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{MaxMemory: largeBytes * 3 / 2, Finders: []Finder{tree}})
				defer s.Close()
				s.cache.memory.inline = tt.inline
				for range 2 {
					if got := code(s, indexed.at(addr)); got != entryLine {
						t.Fatalf("got %q, want %q", got, entryLine)
					}
				}
				p := pinned(t, s, indexed)
				answer := make(chan string, 1)
				go func() { answer <- code(s, newcomer.at(addr)) }()
				synctest.Wait()
				s.cache.trim()
				if open, evicted := openIn(t, s, indexed); !open || evicted != 0 {
					t.Errorf("its file is open: %v; evicted %d times, want none", open, evicted)
				}
				p.release()
				if got := <-answer; got != entryLine {
					t.Errorf("the newcomer: got %q, want %q: %s", got, entryLine, s.Report(newcomer.id, "").Fault)
				}
				if open, evicted := openIn(t, s, indexed); open || evicted != 1 {
					t.Errorf("after its index was made its file is open: %v; evicted %d times, want once", open, evicted)
				}
			})
		})
	}
}

// zlibbed returns a copy of f with compressed debug sections.
func (f fixture) zlibbed(t *testing.T) fixture {
	t.Helper()
	return f.variant(t, "--compress-debug-sections=zlib")
}

// supplemented returns f as dwz leaves it, compressed. It puts the supplementary file, which has
// slightly more than the given number of bytes when inflated, into the tree at dir.
func (f fixture) supplemented(t *testing.T, dir string, bytes int) fixture {
	t.Helper()
	src := t.TempDir()
	copyFile(t, filepath.Join(src, "one"), f.path)
	copyFile(t, filepath.Join(src, "other"), f.path)
	in(t, src, "dwz", "-m", "alt", "-h", "one", "other")
	alt := fixture{filepath.Join(src, "alt"), idtest.Of(t, filepath.Join(src, "alt"))}
	alt.padded(t, ".debug_str_offsets", bytes).zlibbed(t).place(t, dir)
	return fixture{filepath.Join(src, "one"), f.id}.zlibbed(t)
}

// Windows of decoders and supplementary files must be in memory even with a spill directory. Other
// files must be evicted to make room for them, even if the file that needs them was evicted before.
func TestOtherFilesMakeRoomForWhatCannotSpill(t *testing.T) {
	fuzztest.WithoutRace(t)
	shop := build(t, "shop", source)
	addr := shop.symbols(t)["entry"].Value
	hog := build(t, "hog", source).padded(t, ".debug_addr", 32<<20).zlibbed(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // several windows, of 8 MiB each, are needed at once
	for _, tt := range []struct {
		name string
		file func(dir string) fixture
	}{
		{"zlib", func(string) fixture { return shop.padded(t, ".debug_addr", 18<<20).zlibbed(t) }},
		{"zstd", func(string) fixture {
			return shop.padded(t, ".debug_addr", 18<<20).variant(t, "--compress-debug-sections=zstd")
		}},
		{"dwz", func(dir string) fixture { return shop.supplemented(t, dir, 18<<20) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := tt.file(dir)
			file.place(t, dir)
			hog.place(t, dir)
			s := open(t, Options{MaxMemory: 48 << 20, SpillDir: t.TempDir()}, buildid.NewTree(dir))
			s.cache.memory.inline = 0
			for i := range 6 {
				f, want := file, entryLine
				if i%2 == 1 {
					f, want = hog, "entry /src/hog.cc:17:35\n"
				}
				if got := code(s, f.at(addr)); got != want {
					t.Errorf("question %d: got %q, want %q: %s", i+1, got, want, s.Report(f.id, "").Fault)
				}
			}
			if most, limit := s.cache.memory.most, s.cache.memory.limit(); most > limit {
				t.Errorf("%d bytes were held at most, of %d", most, limit)
			}
		})
	}
}

// A request for memory must be granted if closing an idle file frees enough, even while another
// goroutine trims. A request beyond the whole budget must fail, and must close no file.
func TestMemoryOfIdleFilesIsGranted(t *testing.T) {
	f := large(t)
	for _, tt := range []struct {
		name  string
		ask   func(s *Symbolizer, n int64) bool
		bytes func(s *Symbolizer) int64
		want  bool
	}{
		{"for sections", (*Symbolizer).takesNow, rest, true},
		{"for tables", (*Symbolizer).takes, rest, true},
		{"for sections, too many", (*Symbolizer).takesNow, tooMany, false},
		{"for tables, too many", (*Symbolizer).takes, tooMany, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, Options{MaxMemory: largeBytes * 3 / 2}, oneFile{f, "here"})
			for range 2 {
				code(s, f.at(f.symbols(t)["entry"].Value))
			}
			before := s.cache.held()
			s.cache.memory.trimming.Lock()
			got := tt.ask(s, tt.bytes(s))
			s.cache.memory.trimming.Unlock()
			if open, _ := openIn(t, s, f); got != tt.want || open == tt.want {
				t.Errorf("granted: %v, want %v; the idle file is open: %v", got, tt.want, open)
			}
			if after := s.cache.held(); !tt.want && after != before {
				t.Errorf("%d bytes are held, %d were", after, before)
			}
		})
	}
}

func (s *Symbolizer) takes(n int64) bool    { return (*inner)(s).Take(n) }
func (s *Symbolizer) takesNow(n int64) bool { return s.cache.takeNow(n) == nil }

// rest returns more bytes than are left beside an open large file. tooMany returns more bytes than
// are ever granted.
func rest(s *Symbolizer) int64    { return s.cache.memory.limit() - largeBytes/2 }
func tooMany(s *Symbolizer) int64 { return s.cache.memory.limit() + 1 }

// All files that lack memory must wait at the same time, whether they need it for sections or for
// windows. After admitWait, each must answer from symbols.
func TestAllFilesWaitForMemoryAtTheSameTime(t *testing.T) {
	const streams = 3 * maxInflating
	for _, method := range []string{"zlib", "zstd"} {
		t.Run(method, func(t *testing.T) {
			whole := build(t, "shop", source).padded(t, ".debug_addr", largeBytes)
			files, tree := placed(t, whole.variant(t, "--compress-debug-sections="+method), streams)
			addr := files[0].symbols(t)["entry"].Value
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{MaxMemory: 64 << 20, Finders: []Finder{tree}})
				defer s.Close()
				s.cache.memory.inline = 0
				held := s.cache.memory.limit() - largeBytes/2
				if !(*inner)(s).Take(held) {
					t.Fatal("an empty ledger grants nothing")
				}
				began := time.Now()
				var all sync.WaitGroup
				for _, f := range files {
					all.Go(func() {
						got := code(s, f.at(addr))
						if took := time.Since(began); got != entrySymbol || took != admitWait {
							t.Errorf("got %q after %v, want %q after %v", got, took, entrySymbol, admitWait)
						}
					})
				}
				all.Wait()
				(*inner)(s).Give(held)
			})
		})
	}
}
