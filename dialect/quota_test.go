package dialect

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// traceOf returns a trace of glibc with return addresses of a module, as lines of a log.
func traceOf(module string, addrs ...uint64) string {
	var b strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&b, "%s() [%#x]\n", module, addr)
	}
	return b.String()
}

// judgeTraces reads logs, each with one trace that begins at its first line, as parts of one log. It
// returns the number of traces with a located frame, and the comparisons of the searches for biases.
func judgeTraces(r *Reader, m *Image, logs []string) (located, work int) {
	number := int64(0)
	for _, log := range logs {
		trace := Trace{Open: func(*Frame) *Image { return m }, Quota: r.Quota()}
		var frames []*Frame
		for line := range bytes.Lines([]byte(log)) {
			number++
			if l := r.Line(bytes.TrimSuffix(line, []byte("\n")), number); l != nil {
				for _, f := range Clone(l.Frames) {
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

// A log of many short traces cannot take more work than its length allows: 1,000 traces, 100,000 with
// TEST_LONG=1. Each of them alone would take 100,000 comparisons.
func TestSearchesInManyShortTracesAreBoundedByTheLog(t *testing.T) {
	m, _ := thisProgram(t)
	large := *m
	large.Segments = slices.Clone(m.Segments)
	for i := range large.Segments {
		if s := &large.Segments[i]; s.Flags&elf.PF_X != 0 {
			s.MemSize = 200 << 20 // of code, as the file's header promises
		}
	}
	logs, size := make([]string, fuzztest.LongOr(100_000, 1000)), 0
	for i := range logs {
		logs[i] = traceOf("/opt/shop/inventory", 0x7f0000000000+uint64(i)<<30, 0x7f0000000123+uint64(i)<<30) + strings.Repeat("\n", windowLines+1)
		size += len(logs[i])
	}
	r := NewReader(nil)
	_, work := judgeTraces(r, &large, logs)
	if most := maxLogWork + workPerByte*size; work > most {
		t.Errorf("%d comparisons for %d bytes, want at most %d", work, size, most)
	}
	if work < maxLogWork {
		t.Errorf("%d comparisons: the log is not hostile", work)
	}
	if state := r.State(); state.Searched == 0 || state.Searched > maxLogWork {
		t.Errorf("%d comparisons are in the state, want at most %d", state.Searched, maxLogWork)
	}
}

// A service that crashes again and again, and logs between two crashes what services log, has each
// trace located.
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
		logs[i] = traceOf("/opt/shop/inventory", addrs...) + strings.Repeat("12:04:07 INFO order 7 of ledger north is settled\n", windowLines)
	}
	if located, work := judgeTraces(NewReader(nil), m, logs); located != len(logs) || work <= len(logs) {
		t.Errorf("%d of %d traces are located, with %d comparisons", located, len(logs), work)
	}
}
