package rtrace

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// live returns the bytes of the heap that are in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The memory for a report must not depend on its length, unless --leaks or --compress keeps calls.
// Calls whose resource was freed must not be kept.
func TestMemoryIsConstant(t *testing.T) {
	input := largeReport(128 << 10)
	begin := bytes.Index(input, []byte("\n1. ")) + 1
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: newSymbolizer(t), PrefixMap: fixtures(t), Wait: 1 << 40}}
	for _, form := range []string{"rtrace", "json", "markup", "rtrace --leaks", "json --call-address=0x7f0000001372", "rtrace --context=1 --depth=2"} {
		w := translation(t, form, io.Discard, o)
		w.Write(input[:begin])
		var before int64
		for i := range 24 {
			if i == 4 {
				before = live()
			}
			for rest := input[begin:]; len(rest) > 0; {
				n := min(len(rest), 64<<10)
				w.Write(rest[:n])
				rest = rest[n:]
			}
		}
		if after := live(); after > before+256<<10 {
			t.Errorf("%s: 2.5 MiB of a report keep %d KiB", form, (after-before)>>10)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The memory for kept calls must be bounded, and a diagnostic must report how many calls were left
// out. After frees, further calls must be kept again.
func TestWhatIsKeptIsBounded(t *testing.T) {
	const most = 2 << 20
	for _, form := range []string{"rtrace --leaks", "json --compress", "markup --leaks --compress"} {
		var diagnostics []string
		o := Options{ReportOptions: symbolize.ReportOptions{Diagnose: func(s string) { diagnostics = append(diagnostics, s) }}}
		o.Memory = report.NewBudget(int64(most), nil)
		var out strings.Builder
		w := translation(t, form, &out, o)
		before := live()
		for i := range 60_000 {
			fmt.Fprintf(w, "%d. malloc(1) = 0x%x\n\t0x%x\n\n", i, i, i)
			if i == 40_000 && strings.Contains(form, "leaks") {
				for j := range 40_000 {
					fmt.Fprintf(w, "%d. free(0x%x)\n\n", i, j)
				}
			}
		}
		if kept := live() - before; kept > 4*most {
			t.Errorf("%s: keeps %d MiB, where %d may be", form, kept>>20, most>>20)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if len(diagnostics) != 1 || !strings.Contains(diagnostics[0], "calls exceed the 2 MiB of memory allowed and are left out") {
			t.Errorf("%s: diagnostics %q", form, diagnostics)
		}
		if first := fmt.Sprintf("\n%d. malloc", 40_001); strings.HasPrefix(form, "rtrace") && !strings.Contains("\n"+out.String(), first) {
			t.Errorf("%s: %q is not there, although there was room again", form, first)
		}
	}
}

// If no frame of a large report is resolved, the header must be printed unchanged once maxHold
// bytes are held back.
func TestTheHeaderWaitsForSoMuch(t *testing.T) {
	missing := []byte("version=2.0, pid=312\n: /lib/prog64.so => 0x7f0000001000-0x7f0000002000\n")
	missing = append(missing, bytes.Repeat([]byte("1. malloc(1) = 0x1\n\t0x1372\n\n"), (maxHold+1<<20)/29)...)
	var diagnostics []string
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: newSymbolizer(t), PrefixMap: fixtures(t), Wait: 1 << 40, Diagnose: func(s string) { diagnostics = append(diagnostics, s) }}}
	var out bytes.Buffer
	w := NewReport(&out, o)
	before := live()
	w.Write(missing)
	if kept := live() - before - int64(out.Cap()); kept > 2*maxHold {
		t.Errorf("keeps %d MiB", kept>>20)
	}
	if !bytes.Equal(out.Bytes(), missing[:out.Len()]) || out.Len() < maxHold {
		t.Errorf("%d bytes came out, or not as they were", out.Len())
	}
	io.WriteString(w, "\t0x7f0000001391\n")
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(out.String(), "\t0x7f0000001391 in outer() at /src/prog.c:25\n") {
		t.Errorf("got %q at the end", out.Bytes()[out.Len()-100:])
	}
	if want := "the header omits the step resolve, since no frame in the first 16 MiB was resolved"; len(diagnostics) != 1 || diagnostics[0] != want {
		t.Errorf("got %q, want %q", diagnostics, want)
	}
}

// Hostile reports, such as those with endless lines or backtraces, many maps, or many calls with
// one backtrace, must take bounded time and memory. Only calls beyond the limits may be lost.
func TestHostileReportsAreBounded(t *testing.T) {
	repeat := func(n int, format string) []byte {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.Bytes()
	}
	const n = 1 << 13
	reports := map[string][]byte{
		"one line":                   bytes.Repeat([]byte("x"), 3<<20),
		"one header":                 append([]byte("version=1"), bytes.Repeat([]byte(",a=b"), 250<<10)...),
		"one map":                    append([]byte(": /lib/"), bytes.Repeat([]byte("=> "), 300<<10)...),
		"one call":                   append([]byte("1. f"), bytes.Repeat([]byte("<("), 500<<10)...),
		"one backtrace":              append([]byte("1. f(1) = 0x1\n"), repeat(4*n, "\t0x%x\n")...),
		"one recursion":              append([]byte("1. f(1) = 0x1\n"), repeat(4*n, "\t0x1 f%[1]d() at a.c:1\n")...),
		"a function that calls":      append([]byte("1. f(1) = 0x1\n"), bytes.Repeat([]byte("\t0x1 f() at a.c:1\n"), 4*n)...),
		"one call with arguments":    append([]byte("1. f(1) = 0x1\n"), repeat(4*n, "\t$%d = 1\n")...),
		"calls with one backtrace":   append([]byte("version=1, pid=2, filter=compress\n"), repeat(n, "%d. f(1) = 0x1\n")...),
		"backtraces":                 repeat(n, "1. f(1) = 0x1\n\t0x%x\n\n"),
		"maps of one place":          repeat(n, ": /x%d => 0x1000-0x2000\n"),
		"maps of many places":        repeat(n, ": /lib/prog64.so => 0x%[1]x000-0x%[1]x800\n"),
		"pieces of a segment":        repeat(n, ": /lib/prog64.so => 0x%[1]x0000-0x%[1]xffff\n"),
		"maps that grow":             repeat(n, ": /lib/old.so => 0x1000-0x%[1]xff000\n"),
		"maps and frames":            repeat(n, ": /lib/old.so => 0x%[1]x000-0x%[1]xfff\n1. f(1) = 0x1\n\t0x%[1]x29\n\n"),
		"types":                      repeat(n, "<%[1]x> : type%[1]d (x)\n%[1]d. f<type%[1]d>(1) = 0x1\n"),
		"contexts":                   repeat(n, "@ %x : x\n"),
		"headers":                    repeat(n, "version=1, pid=%d\n1. f(1) = 0x1\n"),
		"comments":                   append([]byte("1. f(1) = 0x1\n"), repeat(n, "## %d\n")...),
		"frames of nobody":           repeat(n, "\t0x%x f()\n"),
		"lines that look like calls": repeat(n, "%d. f(\n"),
	}
	o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: fixtures(t), Symbolizer: newSymbolizer(t), Wait: 1 << 40}}
	o.Memory = report.NewBudget(16<<20, nil)
	for name, input := range reports {
		for _, form := range []string{"rtrace", "json", "markup --leaks", "rtrace --compress --call-address=0x1 --depth=3"} {
			before := live()
			w := translation(t, form, io.Discard, o)
			for rest := input; len(rest) > 0; {
				n := min(len(rest), 256<<10)
				if _, err := w.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if kept := live() - before; kept > 96<<20 {
				t.Errorf("%s, %s: keeps %d MiB", name, form, kept>>20)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
