package filter

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// Maximum work on a line or log for each of its bytes, and the maximum growth if it is twice as
// long. A plain line is scanned once and copied once.
const (
	maxStepsAByte   = 20
	maxWrittenAByte = 30  // bytes; in JSON, {{{pc:0}}} without an answer takes 200
	maxAllocsAByte  = 300 // bytes allocated: a piece has 150 bytes, and is copied when the slice grows
	maxGrowth       = 2.2 // factor of the cost for a line or log twice as long
)

// worstElements are elements of each kind in their shortest forms, and text that looks like an
// element.
var worstElements = []struct{ name, text string }{
	{"text", "x "},
	{"blanks", "        "},
	{"sentence", "SUMMARY: a, "},
	{"digits", "1 2 3 "},
	{"colour", "\x1b[1m"},
	{"escape", "\x1b["},
	{"not UTF-8", "\xe2\x80"},
	{"reset", "{{{reset}}}"},
	{"module", "{{{module:1::elf:a}}}"},
	{"another module", "{{{module:2:b:elf:b}}}"},
	{"mmap", "{{{mmap:0:1:load:0:r:0}}}"},
	{"mmap of another", "{{{mmap:0x500000:1:load:1:r:0}}}"},
	{"bt", "{{{bt:0:0}}}"},
	{"pc", "{{{pc:0}}}"},
	{"pc in a module", "{{{pc:0x500100}}}"},
	{"data", "{{{data:0}}}"},
	{"symbol", "{{{symbol:a}}}"},
	{"empty hexdict", "{{{hexdict:}}}"},
	{"hexdict", "{{{hexdict:a:0x500100}}}"},
	{"open hexdict", "{{{hexdict:"},
	{"end of a hexdict", "}}}"},
	{"dumpfile", "{{{dumpfile:a:b}}}"},
	{"unknown", "{{{u}}}"},
	{"malformed", "{{{bt:z}}}"},
	{"open", "{{{bt:"},
	{"open symbol", "{{{symbol:{{{"},
	{"braces", "{{{"},
	{"module's fields", "{{{module:0::elf::elf::elf:z}}}"},
}

var worstModes = []struct {
	name string
	o    Options
}{
	{"text", Options{}},
	{"colour", Options{Color: ColorAlways}},
	{"terminal", Options{Color: ColorNever, Terminal: true}},
	{"look", Options{Color: ColorAlways, Terminal: true, Display: Display{Own: new(findings.Own), Width: 80, Fold: true}}},
	{"no modules", Options{ModuleLines: ModuleLinesNone}},
	{"JSON", Options{Output: JSON}},
}

const worstContext = "{{{reset}}}\n{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n"

// A cost is the work on a log.
type cost struct{ steps, written, allocated int64 }

// costOf returns the cost of log after worstContext.
func costOf(o Options, log string) cost {
	var out countWriter
	f := New(&out, o)
	f.o.Diagnose = func(Diagnostic) {}
	f.Write([]byte(worstContext))
	work := func() int64 { return f.steps + f.process.space.moved }
	steps, written, allocated := work(), int64(out), allocatedBytes()
	f.Write([]byte(log))
	f.Close()
	return cost{work() - steps, int64(out) - written, allocatedBytes() - allocated}
}

func allocatedBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// checkCost fails the test if a log of n bytes costs more than the maximum per byte. It also fails
// if the log costs more than maxGrowth times its first half.
func checkCost(t *testing.T, what string, n int, half, whole cost) {
	t.Helper()
	const floor = 1 << 14 // bytes for any log
	for _, c := range []struct {
		what        string
		half, whole int64
		most        int64
	}{
		{"steps", half.steps, whole.steps, maxStepsAByte},
		{"bytes written", half.written, whole.written, maxWrittenAByte},
		{"bytes allocated", half.allocated, whole.allocated, maxAllocsAByte},
	} {
		if c.whole > c.most*int64(n)+floor {
			t.Errorf("%s: %d bytes take %d %s, %d a byte; want at most %d", what, n, c.whole, c.what, c.whole/int64(n), c.most)
		}
		if c.what != "bytes allocated" && float64(c.whole) > maxGrowth*float64(c.half)+float64(4*n)+floor { // slices double
			t.Errorf("%s: %d %s grow to %d with twice the bytes", what, c.half, c.what, c.whole)
		}
	}
}

// The work on a line must be linear in its length. The lines consist of any two elements
// alternately, in each form of output.
func TestTheWorkOnALineGrowsWithItsLength(t *testing.T) {
	fuzztest.WithoutRace(t)
	pairs, alone := 8<<10, 8<<10 // bytes
	if os.Getenv("TEST_LONG") == "1" {
		pairs, alone = 64<<10, maxLine/2
	}
	for _, mode := range worstModes {
		t.Run(mode.name, func(t *testing.T) {
			for i, a := range worstElements {
				n := alone
				for _, b := range worstElements[i:] {
					both := a.text + b.text
					half := strings.Repeat(both, n/len(both)) + "\n"
					whole := strings.Repeat(both, 2*n/len(both)) + "\n"
					checkCost(t, a.name+" and "+b.name, len(whole), costOf(mode.o, half), costOf(mode.o, whole))
					n = pairs
				}
			}
		})
	}
}

// The work on a log must be linear in its length. Each line of the logs adds to the context or uses
// it.
func TestTheWorkOnALogGrowsWithItsLength(t *testing.T) {
	fuzztest.WithoutRace(t)
	n := 4000
	if os.Getenv("TEST_LONG") == "1" {
		n = 100_000
	}
	module := func(i int) string { return fmt.Sprintf("{{{module:%d:m:elf:%x}}}\n", i, i+16) }
	key, err := ProcessKey(`^(\d+) `)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []struct {
		name string
		line func(i int) string
		key  bool
	}{
		{name: "hexdicts that never end", line: func(int) string { return "{{{hexdict:\n" }},
		{name: "lines of a hexdict", line: func(i int) string { return []string{"{{{hexdict:\n", "a:0x500100 b:0x500200\n"}[min(i%300, 1)] }},
		{name: "hexdicts of two lines", line: func(i int) string { return []string{"{{{hexdict:a:0x500100\n", "}}} {{{hexdict:a:0x500100}}}\n"}[i%2] }},
		{name: "resets", line: func(int) string { return "{{{reset}}}\n" }},
		{name: "modules and resets", line: func(i int) string { return module(i) + "{{{reset}}}\n" }},
		{name: "modules", line: module},
		{name: "modules of one ID", line: func(i int) string { return fmt.Sprintf("{{{module:0:m:elf:%x}}}\n", i+16) }},
		{name: "maps upwards", line: func(i int) string { return fmt.Sprintf("{{{mmap:%#x:1:load:0:r:0}}}\n", 0x600000+2*i) }},
		{name: "maps downwards", line: func(i int) string { return fmt.Sprintf("{{{mmap:%#x:1:load:0:r:0}}}\n", 0x60000000-2*i) }},
		{name: "maps into others", line: func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x100000:load:0:r:%#x}}}\n", 0x600000+i, 0x7000000-3*i)
		}},
		{name: "maps that are repeated", line: func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:1:load:0:r:0}}}\n", 0x600000+2*min(i, i%1000))
		}},
		{name: "maps and what covers them all", line: func(i int) string {
			if i%600 == 599 {
				return "{{{mmap:0x600000:0x100000:load:0:r:0}}}\n"
			}
			return fmt.Sprintf("{{{mmap:%#x:1:load:0:r:0}}}\n", 0x600000+2*i)
		}},
		{name: "processes", line: func(i int) string { return fmt.Sprintf("%d {{{module:0:m:elf:aa}}}\n", i) }, key: true},
		{name: "hexdicts of processes", line: func(i int) string { return fmt.Sprintf("%d {{{hexdict:\n", i) }, key: true},
	} {
		lines := func(n int) string {
			var b strings.Builder
			for i := range n {
				b.WriteString(log.line(i))
			}
			return b.String()
		}
		half, whole := lines(n), lines(2*n)
		for _, mode := range worstModes {
			o := mode.o
			if log.key {
				o.ProcessKey = key
			}
			checkCost(t, log.name+" as "+mode.name, len(whole), costOf(o, half), costOf(o, whole))
		}
	}
}

// Plain lines must not take the path that counts steps.
func TestPlainLinesTakeNoSteps(t *testing.T) {
	f := New(io.Discard, Options{})
	f.Write([]byte(strings.Repeat("an ordinary line {with} a {{brace}}\n", 1000)))
	if f.steps != 0 {
		t.Errorf("%d steps", f.steps)
	}
}

// A hexdict with more values than a register dump must get at most maxNotes footnotes. Their
// prefixes together must not exceed maxNotePrefix.
func TestFootnotesAreLimited(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	head, _ := filterString(t, o, dictHead, nil)
	note := func(prefix string, n int) (s string) {
		for i := range n {
			s += fmt.Sprintf("%s[%d] a 0x50018d → bare+0x2\n", prefix, i+1)
		}
		return s
	}
	dict := "{{{hexdict:" + strings.Repeat("a:0x50018d ", 1000) + "}}}"
	prefix := strings.Repeat("p", 100) + ": "
	few := maxNotePrefix / len(prefix)
	for _, test := range []struct{ name, in, notes string }{
		{"values of a line", dict + dict + "\n", note("", maxNotes)},
		{"prefix of few", prefix + "{{{hexdict:" + strings.Repeat("a:0x50018d ", few) + "}}}\n", note(prefix, few)},
		{"prefix of many", prefix + "{{{hexdict:" + strings.Repeat("a:0x50018d ", few+1) + "}}}\n", note("", few+1)},
	} {
		if got, _ := filterString(t, o, dictHead+test.in, nil); got != head+test.in+test.notes {
			t.Errorf("%s: %d bytes came out, want %d; they differ from byte %d on", test.name, len(got), len(head+test.in+test.notes), firstDifference(got, head+test.in+test.notes))
		}
	}
}
