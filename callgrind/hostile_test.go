package callgrind

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// many returns the number of items for a test: n with TEST_LONG=1, otherwise a hundredth of n.
func many(n int) int {
	if os.Getenv("TEST_LONG") == "1" {
		return n
	}
	return n / 100
}

// Hostile profiles must stay within their small budgets and the limits of the package. No costs may
// be lost, and a diagnostic must name the limit.
func TestHostileProfilesAreBounded(t *testing.T) {
	tests := []struct {
		name       string
		write      func(w io.Writer)
		diagnostic string // part of a diagnostic
		cost       int64  // sum of the lines; 0 if not checked
	}{
		{"a million parts", func(w io.Writer) {
			for i := range many(1_000_000) {
				fmt.Fprintf(w, "part: %d\nevents: Ir\nfn=f%d\n1 1\ntotals: 1\n", i, i%7)
			}
		}, "", int64(many(1_000_000))},
		{"functions without end", func(w io.Writer) {
			io.WriteString(w, "events: Ir\n")
			for i := range many(10_000_000) {
				fmt.Fprintf(w, "fn=(%d) f%d\n1 1\n", i, i)
			}
		}, "exceeds the memory for names; new names are replaced", int64(many(10_000_000))},
		{"functions of few names", func(w io.Writer) {
			io.WriteString(w, "events: Ir\n")
			for i := range many(10_000_000) {
				fmt.Fprintf(w, "ob=%d\nfl=%d\nfn=%d\n1 1\n", i%100, i/100%100, i/10_000)
			}
		}, "further functions are summed as one", int64(many(10_000_000))},
		{"places without end", func(w io.Writer) {
			io.WriteString(w, "positions: instr line\nevents: Ir\nfn=f\n0x1 1 1\n")
			for range many(20_000_000) {
				io.WriteString(w, "+1 * 1\n")
			}
		}, "further costs are counted by function only", int64(many(20_000_000)) + 1},
		{"positions beyond all numbers", func(w io.Writer) {
			io.WriteString(w, "positions: instr line\nevents: Ir\nfn=f\n")
			for range 1000 {
				io.WriteString(w, "+18446744073709551615 +18446744073709551615 1\n-99999999999999999999 -99999999999999999999 1\n")
			}
		}, "", 2000},
		{"a name without end", func(w io.Writer) {
			io.WriteString(w, "events: Ir\nfn=")
			for range many(20_000) {
				io.WriteString(w, strings.Repeat("x", 10_000))
			}
			io.WriteString(w, "\n1 1\n")
		}, "longer than", 1},
		{"long names", func(w io.Writer) {
			io.WriteString(w, "events: Ir\n")
			for i := range many(20_000) {
				fmt.Fprintf(w, "fn=%d%s\n1 1\n", i, strings.Repeat("x", 30_000))
			}
		}, "exceeds the memory for names; new names are replaced", int64(many(20_000))},
		{"numbers of names far apart", func(w io.Writer) {
			io.WriteString(w, "events: Ir\n")
			for i := range many(3_000_000) {
				fmt.Fprintf(w, "fn=(%d) f\n1 1\n", i*1_000_003)
			}
		}, "", int64(many(3_000_000))},
		{"events without end", func(w io.Writer) {
			for i := range many(100_000) {
				fmt.Fprintf(w, "event: E%d = E%d + E%d + E%[3]d\nevents: I%[1]d\nfn=f\n1 1\n", i, i/2, i+1)
			}
		}, "defines more than 64 events", 0},
		{"names of events without end", func(w io.Writer) {
			fmt.Fprintf(w, "events: Ir %s\nfn=f\n1 1 1\n", strings.Repeat("x", many(100_000)))
		}, "line 1 has an event name longer than 128 bytes; the costs of this event are left out", 1},
		{"calls in circles", func(w io.Writer) {
			io.WriteString(w, "events: Ir\n")
			n := many(200_000)
			for i := range n {
				fmt.Fprintf(w, "fn=f%d\n1 1\ncfn=f%d\ncalls=1 1\n1 %d\ncfn=f%d\ncalls=1 1\n1 9\n", i, (i+1)%n, n, i/2)
			}
		}, "", int64(many(200_000))},
		{"what is no line", func(w io.Writer) {
			for range many(10_000_000) {
				io.WriteString(w, "not a line\n")
			}
		}, "more lines have the same defect as line", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, output := range []Output{Table, JSON, Profile} {
				var diagnostics strings.Builder
				o := Options{Output: output, ReportOptions: symbolize.ReportOptions{Memory: report.NewBudget(int64(many(report.DefaultMaxMemory/2)), nil)}}
				o.Diagnose = func(s string) {
					if diagnostics.Len() < 1<<20 {
						diagnostics.WriteString(s + "\n")
					}
				}
				total := &totalOf{}
				r := NewReport(total, o)
				w := &inBlocks{w: r}
				tt.write(w)
				if _, err := r.Write(w.b); err != nil {
					t.Fatal(err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(diagnostics.String(), tt.diagnostic) {
					t.Errorf("no diagnostic contains %q:\n%.2000s", tt.diagnostic, diagnostics.String())
				}
				if n := strings.Count(diagnostics.String(), "\n"); n > 300 {
					t.Errorf("%d diagnostics", n)
				}
				if output == JSON && tt.cost != 0 && total.self != tt.cost {
					t.Errorf("functions cost %d, lines %d", total.self, tt.cost)
				}
			}
			if most := peak(); most > 1500<<20 {
				t.Errorf("%d MiB were taken", most>>20)
			}
		})
	}
}

// A counted event must have one weight, however many events the profile has. Otherwise a comparison
// of functions by all events would take quadratic time.
func TestTheCostOfACountedEventIsOneWeight(t *testing.T) {
	var e events
	for i := range maxEvents {
		e.column(fmt.Sprint("E", i))
	}
	costs := make([]int64, maxEvents)
	for i, ev := range e.counted {
		factors, err := e.weights(ev)
		if err != nil {
			t.Fatal(err)
		}
		m := newMeasure(ev, factors)
		costs[i] = int64(i) + 1
		if len(m.weights) != 1 || m.value(costs) != int64(i)+1 {
			t.Errorf("event %d has %d weights and the cost %d, not one and %d", i, len(m.weights), m.value(costs), i+1)
		}
	}
}

// Floods of places, calls, functions and names must stay within the budget that two profiles share.
// Costs that exceed the budget must still be in the sums.
func TestProfilesShareABudget(t *testing.T) {
	const most, lines = 1 << 20, 25_000
	floods := []struct {
		name string
		line func(i int) string
	}{
		{"places", func(i int) string { return fmt.Sprintf("fn=f%d\n0x%x %d 1\n", i%10, i*16, i) }},
		{"calls", func(i int) string {
			return fmt.Sprintf("fn=f\n0x%x 1 1\ncfn=g%d\ncalls=1 1\n0x%x 1 1\n", i, i%100, i)
		}},
		{"functions", func(i int) string { return fmt.Sprintf("fn=(%d) f%d\n1 1 1\n", i, i) }},
		{"long names", func(i int) string { return fmt.Sprintf("fn=f%d%s\n1 1 1\n", i, strings.Repeat("x", 100)) }},
		{"jumps", func(i int) string { return fmt.Sprintf("fn=f\n0x1 1 1\njump=1 0x%x 5\n0x1 1\n", i) }},
	}
	for _, tt := range floods {
		t.Run(tt.name, func(t *testing.T) {
			budget := report.NewBudget(most, nil)
			for _, output := range []Output{JSON, Profile} {
				var reports [2]*Report
				var totals [2]totalOf
				for i := range reports {
					reports[i] = NewReport(&totals[i], Options{Output: output, ReportOptions: symbolize.ReportOptions{Memory: budget}})
					io.WriteString(reports[i], "positions: instr line\nevents: Ir\n")
				}
				for i := range lines {
					for _, r := range reports {
						if _, err := io.WriteString(r, tt.line(i)); err != nil {
							t.Fatal(err)
						}
					}
				}
				// JSON keeps no jumps
				if used := budget.Used(); used > most || used < most/2 && !(tt.name == "jumps" && output == JSON) {
					t.Errorf("%v: %d KiB are used of %d", output, used>>10, most>>10)
				}
				if live := liveHeap(); live > 2*most {
					t.Errorf("%v: %d KiB are live", output, live>>10)
				}
				for i, r := range reports {
					if err := r.Close(); err != nil {
						t.Fatal(err)
					}
					if output == JSON && totals[i].self != lines {
						t.Errorf("functions cost %d, lines %d", totals[i].self, lines)
					}
				}
				if used := budget.Used(); used != 0 {
					t.Errorf("%v: %d bytes were not given back", output, used)
				}
			}
		})
	}
}

// liveHeap returns the bytes of the heap that survive a collection.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// inBlocks collects small writes into blocks.
type inBlocks struct {
	w io.Writer
	b []byte
}

func (w *inBlocks) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	if len(w.b) > 64<<10 {
		if _, err := w.w.Write(w.b); err != nil {
			return 0, err
		}
		w.b = w.b[:0]
	}
	return len(p), nil
}

// totalOf adds up the functions' own costs, from JSON with one event.
type totalOf struct {
	rest []byte
	self int64
}

func (s *totalOf) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok {
			s.rest = bytes.Clone(s.rest)
			return len(p), nil
		}
		s.rest = rest
		if bytes.Contains(line, []byte(`"record":"function"`)) {
			_, after, _ := bytes.Cut(line, []byte(`"self":{"`))
			_, after, _ = bytes.Cut(after, []byte(`:`))
			var n int64
			fmt.Sscan(string(after[:bytes.IndexAny(after, ",}")]), &n)
			s.self += n
		}
	}
}

// peak returns how many bytes the process has obtained from the system.
func peak() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
