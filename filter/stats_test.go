package filter_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
)

// For the same log, a Filter and Lines must have the same counts. The Cache must count their
// lookups.
func TestStats(t *testing.T) {
	want := filter.Stats{Lines: 12, Elements: 15, Resolved: 4, Unresolved: 2}
	want.Outcomes[filter.OriginBT] = [filter.Results]int64{filter.ResultResolved: 1, filter.ResultSymbolOnly: 1}
	want.Outcomes[filter.OriginPC] = [filter.Results]int64{filter.ResultSymbolOnly: 1, filter.ResultNoModule: 2}
	want.Outcomes[filter.OriginData] = [filter.Results]int64{filter.ResultResolved: 1}
	o := filter.Options{Symbolizer: newSymbolizer(t), Patience: patient, Cache: filter.NewCache(1 << 20)}
	f := filter.New(io.Discard, o)
	io.WriteString(f, page)
	f.Close()
	want.Processes = 1
	if got := f.Stats(); got != want {
		t.Errorf("a Filter: got %+v, want %+v", got, want)
	}
	want.Processes = 0 // the caller has the Contexts
	cold := o.Cache.Stats()
	if cold.Misses != 3 || cold.Hits != 1 || cold.Bytes == 0 || cold.Budget != 1<<20 {
		t.Errorf("the cache: %+v", cold)
	}
	l := filter.NewLines(o)
	var c filter.Context
	for line := range strings.Lines(page) {
		l.Append(nil, &c, []byte(line))
	}
	if got := l.Stats(); got != want {
		t.Errorf("Lines: got %+v, want %+v", got, want)
	}
	if warm := o.Cache.Stats(); warm.Hits <= cold.Hits || warm.Misses != cold.Misses || warm.Bytes != cold.Bytes {
		t.Errorf("the cache is %+v after the same log, and was %+v before", warm, cold)
	}
}

type finderFunc func(context.Context) (*buildid.File, error)

func (f finderFunc) Find(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	return f(ctx)
}

// Addresses must be counted by the kind of their element, and by the result of the lookup.
func TestAddressesAreCountedByOriginAndResult(t *testing.T) {
	const module = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n"
	tree := buildid.NewTree("testdata/debug")
	for _, tt := range []struct {
		name, log string
		find      symbolize.Finder
		want      string
	}{
		{"a line", module + "{{{bt:0:0x50017b:ra}}}\n{{{bt:0:0x50017b:ra}}}\n{{{pc:0x50017b:ra}}}\n", tree, "bt resolved 2, pc resolved 1"},
		{"a symbol", module + "{{{bt:0:0x50018d:pc}}}\n", tree, "bt symbol_only 1"},
		{"a variable", module + "{{{mmap:0x601000:0x1000:load:0:rw:0x401000}}}\n{{{data:0x6011dc}}}\n", tree, "data resolved 1"},
		{"no symbol", module + "{{{pc:0x501fff:pc}}}\n", tree, "pc no_symbol 1"},
		{"no module", module + "{{{bt:0:0x1:pc}}}\n{{{data:0x1}}}\n", tree, "bt no_module 1, data no_module 1"},
		{"no address", module + "{{{bt:0:0}}}\n", tree, ""},
		{"values of a hexdict", module + "{{{hexdict: A: 0x50018d B: 7}}}\n", tree, ""},
		{"no file", module + "{{{bt:0:0x50017b:ra}}}\n", finderFunc(func(context.Context) (*buildid.File, error) { return nil, fs.ErrNotExist }), "bt no_file 1"},
		{"a raw frame", "    #0 0x50017b  (/bin/a.out+0x40017b) (BuildId: a0a1a2a3a4a5a6a7)\n", tree, "raw resolved 1"},
		{"a raw frame without a file", "    #0 0x50017b  (/none/b+0x40017b) (BuildId: aaaaaaaaaaaaaaaa)\n", tree, "raw no_file 1"},
		{"raw frames without build IDs", "    #0 0x50017b  (<unknown module>)\n    #1 0x50017b  (/none/b+0x40017b)\n", tree, "raw no_file 1, raw no_module 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{tt.find}})
			defer s.Close()
			var asked int
			f := filter.New(io.Discard, filter.Options{Symbolizer: s, Patience: filter.Patience{
				Local: time.Minute, Servers: time.Minute,
				Asked: func(took time.Duration) {
					if asked++; took <= 0 {
						t.Errorf("a question took %v", took)
					}
				},
			}})
			io.WriteString(f, tt.log)
			f.Close()
			stats := f.Stats()
			if diff := cmp.Diff(tt.want, outcomes(&stats.Outcomes)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if asks := tt.want != "" && !strings.Contains(tt.want, "no_module"); asks && asked == 0 || asked > 2 {
				t.Errorf("%d questions", asked)
			}
		})
	}
}

// While the file of a module is searched, its addresses must count as pending.
func TestAddressesWhoseFileIsSearchedArePending(t *testing.T) {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{finderFunc(func(ctx context.Context) (*buildid.File, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})}})
	defer s.Close()
	f := filter.New(io.Discard, filter.Options{Symbolizer: s})
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n{{{bt:0:0x50017b:ra}}}\n")
	f.Close()
	stats := f.Stats()
	if got := outcomes(&stats.Outcomes); got != "bt pending 1" {
		t.Errorf("got %q", got)
	}
}

// While the file with debug information is searched, Early must count the answers from symbols on
// this machine.
func TestAnswersBySymbolsBeforeDebugInformationAreCounted(t *testing.T) {
	hangs := finderFunc(func(ctx context.Context) (*buildid.File, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	synctest.Test(t, func(t *testing.T) {
		s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/symbols-only"), hangs}})
		defer s.Close()
		f := filter.New(io.Discard, filter.Options{Symbolizer: s, Patience: filter.Patience{Local: time.Minute, Servers: time.Minute}})
		io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n{{{bt:0:0x50017b:ra}}}\n")
		f.Close()
		stats := f.Stats()
		if got := outcomes(&stats.Outcomes); got != "bt symbol_only 1" || stats.Early != 1 {
			t.Errorf("got %q, %d early", got, stats.Early)
		}
	})
}

// outcomes returns the counts that are not 0.
func outcomes(o *filter.Outcomes) string {
	var all []string
	for from := range filter.Origins {
		for result := range filter.Results {
			if n := o[from][result]; n != 0 {
				all = append(all, fmt.Sprintf("%v %v %d", from, result, n))
			}
		}
	}
	return strings.Join(all, ", ")
}
