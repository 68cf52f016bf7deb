package filter_test

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
)

// A pagePrinter prints each line as a paragraph, with a mark around each element.
type pagePrinter struct{}

func (pagePrinter) AppendElement(dst []byte, e *filter.Element) []byte {
	dst = append(dst, e.Tag.String()...)
	switch {
	case e.Answer != nil && len(e.Answer.Frames) > 0:
		for _, f := range e.Answer.Frames {
			dst = fmt.Appendf(dst, " %s:%d", f.Func, f.Line)
		}
	case e.Answer != nil && e.Answer.Err != nil:
		dst = append(dst, " "+e.Answer.Err.Error()...)
	case e.Module != nil:
		dst = fmt.Appendf(dst, " %s %d", e.Module.Name, len(e.Module.Maps))
	case len(e.Values) > 0:
		for _, v := range e.Values {
			dst = fmt.Appendf(dst, " %s=%#x", v.Key, v.Value)
			if v.Answer != nil {
				dst = fmt.Appendf(dst, " in %s", v.Answer.Module)
			}
		}
	default:
		dst = append(dst, " "+e.Name+e.Shown+e.Type...)
	}
	return dst
}

func (pagePrinter) AppendLine(dst []byte, l *filter.Line) []byte {
	dst = fmt.Appendf(dst, "<p id=%d>", l.Number)
	at := 0
	for _, e := range l.Elements {
		dst = append(dst, html.EscapeString(string(l.Text[at:e.Start]))...)
		dst = fmt.Appendf(dst, "<b title=%q>%s</b>", html.EscapeString(string(e.Appended)), html.EscapeString(string(l.Text[e.Start:e.End])))
		at = e.End
	}
	dst = append(dst, html.EscapeString(string(l.Text[at:]))...)
	if l.Continues {
		return append(dst, "…\n"...)
	}
	return append(dst, '\n')
}

func newSymbolizer(t testing.TB) *symbolize.Symbolizer {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s
}

var patient = filter.Patience{Local: time.Minute, Servers: time.Minute}

const page = `<plain> & text
{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}
{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}
{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}
in {{{symbol:_Z1fv}}} at {{{pc:0x50018d:pc}}}, {{{pc:0x1:pc}}}, {{{data:0x5011dc}}}.
<log> {{{bt:0:0x50017b:ra}}} end
{{{bt:1:0x50018d:pc}}}
a {{{module:1:b:elf:bb}}} b {{{module:2:c:elf:cc}}} c {{{pc:0x2}}}
regs {{{hexdict: A: 0x50018d B: 7}}}
{{{dumpfile:llvmcov:cov}}}
{{{reset}}}
end`

// A Printer of another package must get every line with its elements, their answers, and their
// positions in the text.
func TestAThirdPrinter(t *testing.T) {
	var out bytes.Buffer
	f := filter.New(&out, filter.Options{Symbolizer: newSymbolizer(t), Patience: patient, Printer: pagePrinter{}})
	fmt.Fprint(f, page)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := `<p id=1>&lt;plain&gt; &amp; text
<p id=2><b title="module a.out 2">[[[ELF module #0x0 &#34;a.out&#34;; BuildID=a0a1a2a3a4a5a6a7 [0x500000-0x500fff](rx),[0x501000-0x501fff](rw)]]]</b>
<p id=5>in <b title="symbol _Z1fvf()">f()</b> at <b title="pc bare:0">bare+0x2</b>, <b title="pc no module covers the address">[[[pc:0x1:pc]]]</b>, <b title="data ">table[3].refs</b>.
<p id=6>&lt;log&gt; <b title="bt ns::inner(int):9 ns::middle(int):10 int ns::Foo::run&lt;int&gt;(int):12">    #0.1  0x000000000050017a ns::inner(int) /src/a.cpp:9:64 (a.out+0x40017a) end
&lt;log&gt;     #0.2  0x000000000050017a ns::middle(int) /src/a.cpp:10:63 (a.out+0x40017a) end
&lt;log&gt;     #0    0x000000000050017a int ns::Foo::run&lt;int&gt;(int) /src/a.cpp:12:66 (a.out+0x40017a)</b> end
<p id=7><b title="bt bare:0">    #1    0x000000000050018d bare+0x2 (a.out+0x40018d)</b>
<p id=8>a <b title="module b 0">[[[ELF module #0x1 &#34;b&#34;; BuildID=bb]]]</b> b <b title="module c 0">[[[ELF module #0x2 &#34;c&#34;; BuildID=cc]]]</b> c <b title="pc no module covers the address">[[[pc:0x2]]]</b>
<p id=9>regs <b title="hexdict A=0x50018d in a.out">{{{hexdict: A: 0x50018d B: 7}}}</b>
[1] A 0x50018d → bare+0x2
<p id=10><b title="dumpfile covllvmcov">{{{dumpfile:llvmcov:cov}}}</b>
<p id=11><b title="reset ">[[[reset]]]</b>
<p id=12>end
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A Printer must get a long line in parts of bounded size. Together, the parts must have all
// elements of the line.
func TestAPrinterGetsLongLinesInParts(t *testing.T) {
	const elements = 60_000
	var most, bytes, got int
	count := partPrinter(func(l *filter.Line) {
		most, bytes, got = max(most, len(l.Text)), bytes+len(l.Text), got+len(l.Elements)
		for _, e := range l.Elements {
			if string(l.Text[e.Start:e.End]) != "[[[pc:0x1:pc]]]" {
				t.Fatalf("an element is at %d to %d of %q", e.Start, e.End, l.Text)
			}
		}
	})
	f := filter.New(nil, filter.Options{Printer: count, Emit: func(int64, []byte) error { return nil }})
	line := strings.Repeat("{{{pc:0x1:pc}}}", elements) + "\n"
	f.Write([]byte(line))
	f.Close()
	if got != elements || bytes != len(line)-1 || most > 1<<20+1<<10 {
		t.Errorf("%d elements in %d bytes, %d at most at a time; want %d in %d", got, bytes, most, elements, len(line)-1)
	}
}

// A partPrinter receives lines, and appends 100 bytes for each element.
type partPrinter func(*filter.Line)

func (partPrinter) AppendElement(dst []byte, _ *filter.Element) []byte {
	return append(dst, make([]byte, 100)...)
}

func (p partPrinter) AppendLine(dst []byte, l *filter.Line) []byte {
	p(l)
	return dst
}

// In every output format, Resolved must be called with the answer for each address of a log, in
// order.
func TestResolvedAnswers(t *testing.T) {
	for name, o := range map[string]filter.Options{
		"text": {}, "json": {Output: filter.JSON}, "printer": {Printer: pagePrinter{}},
		"no module lines": {ModuleLines: filter.ModuleLinesNone}, "raw": {ModuleLines: filter.ModuleLinesRaw},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			o.Symbolizer, o.Patience = newSymbolizer(t), patient
			o.Resolved = func(r *filter.Resolved) {
				s := fmt.Sprintf("%d %v #%d %#x %#x %s+%#x %s:", r.Line, r.Tag, r.Frame, r.Addr, r.Lookup, r.Module, r.Offset, r.ID)
				for _, f := range r.Frames {
					s += fmt.Sprintf(" %s %s:%d", f.Func, f.File, f.Line)
				}
				if r.Variable != nil {
					s += fmt.Sprintf(" %s+%d", r.Variable.Name, r.Variable.Offset)
				}
				if r.Err != nil {
					s += " " + r.Err.Error()
				}
				got = append(got, s)
			}
			var out bytes.Buffer
			f := filter.New(&out, o)
			fmt.Fprint(f, page)
			f.Close()
			want := []string{
				"5 pc #0 0x50018d 0x50018d a.out+0x40018d a0a1a2a3a4a5a6a7: bare :0",
				"5 pc #0 0x1 0x1 +0x0 : no module covers the address",
				"5 data #0 0x5011dc 0x5011dc a.out+0x4011dc a0a1a2a3a4a5a6a7: table+28",
				"6 bt #0 0x50017b 0x50017a a.out+0x40017a a0a1a2a3a4a5a6a7: ns::inner(int) /src/a.cpp:9 ns::middle(int) /src/a.cpp:10 int ns::Foo::run<int>(int) /src/a.cpp:12",
				"7 bt #1 0x50018d 0x50018d a.out+0x40018d a0a1a2a3a4a5a6a7: bare :0",
				"8 pc #0 0x2 0x1 +0x0 : no module covers the address",
				"9 hexdict #0 0x50018d 0x50018d a.out+0x40018d a0a1a2a3a4a5a6a7: bare :0",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A repeated frame must not cause allocations, with or without Resolved.
func TestTypedAnswersAllocateNothing(t *testing.T) {
	answers := 0
	for name, resolved := range map[string]func(*filter.Resolved){
		"without": nil,
		"with":    func(r *filter.Resolved) { answers += len(r.Frames) },
	} {
		l := filter.NewLines(filter.Options{Symbolizer: newSymbolizer(t), Patience: patient, Resolved: resolved})
		var c filter.Context
		var dst []byte
		dst, _ = l.Append(dst, &c, []byte(page[:strings.Index(page, "in {{{")]))
		record := []byte("{{{bt:0:0x50017b:ra}}}\n")
		if n := testing.AllocsPerRun(100, func() { dst, _ = l.Append(dst[:0], &c, record) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if answers == 0 {
		t.Error("no answer has come")
	}
}
