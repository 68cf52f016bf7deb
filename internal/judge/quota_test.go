package judge

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

// traceOf returns a trace in glibc's form with return addresses in a module.
func traceOf(module string, addrs ...uint64) string {
	var b strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&b, "%s() [%#x]\n", module, addr)
	}
	return b.String()
}

// judgeTraces judges the traces in logs, the parts of one log. Each part has one trace, which
// begins at its first line. judgeTraces returns the number of traces with a located frame, and the
// number of comparisons made in the searches for biases.
func judgeTraces(r *dialect.Reader, m *Image, logs []string) (located, work int) {
	number := int64(0)
	var memory Memory
	for _, log := range logs {
		trace := Trace{Open: func(*dialect.Frame) *Image { return m }, Quota: r.Quota(), Memory: &memory}
		var frames []*Frame
		for line := range bytes.Lines([]byte(log)) {
			number++
			if l := r.Line(bytes.TrimSuffix(line, []byte("\n")), number); l != nil {
				for _, f := range Clone(Unplaced(nil, l.Frames)) {
					frames = append(frames, &f)
				}
			}
		}
		trace.Judge(frames, r.Facts())
		work += trace.worked
		if slices.ContainsFunc(frames, func(f *Frame) bool { return f.Place.Err == nil }) {
			located++
		}
	}
	return located, work
}

// For a log of many short traces, the number of comparisons must be bounded by the log's length.
// The log has 1,000 traces, or 100,000 with TEST_LONG=1. Each trace alone would take 100,000
// comparisons.
func TestSearchesInManyShortTracesAreBoundedByTheLog(t *testing.T) {
	m, _ := thisProgram(t)
	large := *m
	large.Segments = slices.Clone(m.Segments)
	for i := range large.Segments {
		if s := &large.Segments[i]; s.Flags&elf.PF_X != 0 {
			s.MemSize = 200 << 20 // the size of the code in the file's header
		}
	}
	logs, size := make([]string, fuzztest.LongOr(100_000, 1000)), 0
	for i := range logs {
		logs[i] = traceOf("/opt/shop/inventory", 0x7f0000000000+uint64(i)<<30, 0x7f0000000123+uint64(i)<<30+uint64(i)) + strings.Repeat("\n", dialect.WindowLines+1)
		size += len(logs[i])
	}
	r := dialect.NewReader(nil)
	_, work := judgeTraces(r, &large, logs)
	if most := dialect.MaxLogSteps + dialect.StepsPerByte*size; work > most {
		t.Errorf("%d comparisons for %d bytes, want at most %d", work, size, most)
	}
	if work < dialect.MaxLogSteps {
		t.Errorf("%d comparisons: the log is not hostile", work)
	}
	if state := r.State(); state.Searched == 0 || state.Searched > dialect.MaxLogSteps {
		t.Errorf("%d comparisons are in the state, want at most %d", state.Searched, dialect.MaxLogSteps)
	}
}

// If a service crashes repeatedly, and logs ordinary lines between two crashes, each trace must be
// located.
func TestSearchesInTracesOfAServiceFindAll(t *testing.T) {
	m, returns := thisProgram(t)
	rng := rand.New(rand.NewPCG(3, 4))
	logs := make([]string, 100)
	for i := range logs {
		bias := 0x7f0000000000 + rng.Uint64N(1<<28)*pageSize
		var addrs []uint64
		for range 12 {
			addrs = append(addrs, bias+returns[rng.IntN(len(returns))])
		}
		logs[i] = traceOf("/opt/shop/inventory", addrs...) + strings.Repeat("12:04:07 INFO order 7 of ledger north is settled\n", dialect.WindowLines)
	}
	if located, work := judgeTraces(dialect.NewReader(nil), m, logs); located != len(logs) || work <= len(logs) {
		t.Errorf("%d of %d traces are located, with %d comparisons", located, len(logs), work)
	}
}

// If a service crashes repeatedly with the same stacks, each trace must be located without another
// search, even if no lines are between two crashes.
func TestRepeatedTracesAreNotSearchedAgain(t *testing.T) {
	fuzztest.WithoutRace(t)
	m, returns := thisProgram(t)
	rng := rand.New(rand.NewPCG(7, 8))
	places := make([][]uint64, 40)
	for i := range places {
		for range 12 {
			places[i] = append(places[i], returns[rng.IntN(len(returns))])
		}
	}
	logs := func(times int) (logs []string) {
		for range times {
			for _, place := range places {
				bias := 0x7f0000000000 + rng.Uint64N(1<<28)*pageSize
				addrs := make([]uint64, len(place))
				for i := range addrs {
					addrs[i] = place[i] + bias
				}
				logs = append(logs, traceOf("/opt/shop/inventory", addrs...))
			}
		}
		return logs
	}
	const times = 50
	once, work := judgeTraces(dialect.NewReader(nil), m, logs(1))
	all, more := judgeTraces(dialect.NewReader(nil), m, logs(times))
	if once != len(places) || all != times*len(places) || more != work || work == 0 {
		t.Errorf("%d of %d traces are located with %d comparisons, and %d of %d with %d", once, len(places), work, all, times*len(places), more)
	}
}

// If the Quota is spent, frames that need a search of their file must get ErrBudget. Frames with a
// known base must still be located, until the Quota is overdrawn by as much again. Further text of
// the log adds to the Quota: frames must then be located again.
func TestFramesBeyondTheQuotaStayRaw(t *testing.T) {
	m, returns := thisProgram(t)
	var addrs []uint64
	for i := range 12 {
		addrs = append(addrs, 0x7f0000000000+returns[(i+1)*len(returns)/13])
	}
	named := *m
	named.HasBase, named.Base = true, 0x7f0000000000+m.lowest()
	for _, test := range []struct {
		name string
		used int
		m    *Image
		want error
	}{
		{"new", 0, m, nil},
		{"spent", dialect.MaxLogSteps, m, ErrBudget},
		{"spent, with nothing to search", dialect.MaxLogSteps, &named, nil},
		{"exhausted", 2 * dialect.MaxLogSteps, &named, ErrBudget},
	} {
		var q dialect.Quota
		q.Spend(test.used)
		judge := func() error {
			frames := framesOfModule(m.Path, 0, addrs)
			image := *test.m
			trace := Trace{Open: func(*dialect.Frame) *Image { return &image }, Quota: &q}
			trace.Judge(frames, &dialect.Facts{})
			return frames[0].Place.Err
		}
		if got := judge(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		q.Add(2 * dialect.MaxLogSteps / dialect.StepsPerByte)
		if got := judge(); got != nil {
			t.Errorf("%s, and then text: %v", test.name, got)
		}
	}
}

// The lookup of a demangled name takes a step for each symbol. If the Quota is spent, the name must
// not be looked up, and must neither prove nor refute the file. The frame must stay unresolved.
func TestNamesAreLookedUpWithinTheQuota(t *testing.T) {
	path := filepath.Join("..", "..", "symbolize", "testdata", "arch", "aarch64.elf")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const symbols = 8
	for _, test := range []struct {
		used     int
		searched bool
	}{{0, true}, {dialect.MaxLogSteps - 1000, true}, {dialect.MaxLogSteps, false}} {
		steps := func(names ...string) (all int64, reason error) {
			f, err := object.Open(bytes.NewReader(content), int64(len(content)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if n := len(slices.Collect(f.AllSymbols())); n != symbols {
				t.Fatalf("the file has %d symbols", n)
			}
			at := uint64(0)
			for _, s := range f.Segments() {
				if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
					at = s.Addr + s.MemSize/2
				}
			}
			var q dialect.Quota
			q.Spend(test.used)
			image := Image{Path: path, File: f, Segments: f.Segments(), HasBase: true}
			trace := Trace{Open: func(*dialect.Frame) *Image { return &image }, Quota: &q, Demangle: func(s string) string { return s }}
			var frames []*Frame
			for _, name := range names {
				frames = append(frames, frame(dialect.Frame{Dialect: glibc, LoggedPlace: dialect.LoggedPlace{Module: path, Kind: dialect.Vaddr, Value: at, Symbol: dialect.Symbol{Name: name, Inside: true}}}))
			}
			trace.Judge(frames, &dialect.Facts{})
			return q.Steps(), frames[0].Place.Err
		}
		one, reason := steps("shop::settle(int)", "shop::settle(int)")
		two, _ := steps("shop::settle(int)", "shop::order(int)")
		if more := two - one; (reason != ErrBudget) != test.searched || test.searched && more < symbols || !test.searched && more != 0 {
			t.Errorf("%d steps used: %d more for another name, and %v; the file has %d symbols", test.used, more, reason, symbols)
		}
	}
}
