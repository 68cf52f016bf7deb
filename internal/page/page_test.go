package page

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/internal/pagetest"
	"github.com/symfilter/symfilter/symbolize"
)

var update = flag.Bool("update", false, "write what comes out into the files of testdata")

// patient sets longer waits than any test needs.
var patient = filter.Patience{Local: time.Minute, Servers: time.Minute}

// testSymbolizer returns a symbolizer with the debug files of filter's tests.
func testSymbolizer(t testing.TB) *symbolize.Symbolizer {
	t.Helper()
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../filter/testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s
}

// pageOf returns the page of a log, and the log as a terminal without colours shows it.
func pageOf(t testing.TB, log []byte, o filter.Options) (page []byte, text string) {
	t.Helper()
	run := func(o filter.Options) []byte {
		var out bytes.Buffer
		f := filter.New(&out, o)
		if _, err := f.Write(log); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	p := New("log")
	o.Printer = p
	page = p.AppendRest(run(o))
	o.Printer, o.Color, o.Terminal, o.Display.Own = nil, filter.ColorNever, true, nil
	return page, strings.ReplaceAll(string(run(o)), "\r\n", "\n")
}

// checkPage parses a page, and compares the text of its log with want.
func checkPage(t testing.TB, page []byte, want string) *pagetest.Page {
	t.Helper()
	p, err := pagetest.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		from := max(0, at-100)
		t.Fatalf("the text differs from byte %d on: got\n%.300q\nwant\n%.300q", at, got[from:], want[from:])
	}
	return p
}

// The logs are from the tests of other packages. The text of a page must equal the output for a
// terminal without colours.
func TestPagesHaveTheTextOfTheLog(t *testing.T) {
	var logs []string
	for _, pattern := range []string{"../../testdata/*.log", "../../filter/testdata/script/*.txtar", "../dialect/testdata/*/*.log", "../dialect/testdata/*.txt", "../../integration/testdata/*.log"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, found...)
	}
	if len(logs) < 20 {
		t.Fatalf("only %d logs", len(logs))
	}
	s := testSymbolizer(t)
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		page, text := pageOf(t, log, filter.Options{Symbolizer: s, Patience: patient})
		t.Run(name, func(t *testing.T) { checkPage(t, page, text) })
	}
}

// largePage returns the page of a log, with such low limits that a page of 500 bytes is large.
// chunk is the number of bytes in each Write.
func largePage(t testing.TB, log []byte, o filter.Options, chunk int) []byte {
	t.Helper()
	page := New("large")
	page.html.Limit(500, 2)
	o.Printer = page
	var out bytes.Buffer
	f := filter.New(&out, o)
	for b := log; len(b) > 0; {
		n := min(len(b), chunk)
		if _, err := f.Write(b[:n]); err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return page.AppendRest(out.Bytes())
}

// FuzzHTML checks that the page of any log, small or large, has the text of the log, and only
// allowed elements and attributes.
func FuzzHTML(f *testing.F) {
	for seed := range uint64(6) {
		f.Add([]byte(logtest.NewGenerator(seed).Log(20)))
	}
	for _, s := range logtest.Hostile {
		f.Add([]byte(hostileLog(s)))
	}
	f.Add([]byte("{{{hexdict: a:0x500180\nb:0x2 c:\xff}}} x\n{{{bt:0:0x1}}}\n\xe2{{{bt:1:0x1}}}\x82\xac\r\n"))
	f.Add([]byte("\x1b[31m{{{bt:0:0x1}}}\x1b[3{{{bt:1:0x1}}}1m<\x1b[0m\n\n\n\x1b[1;38;5;99mx\x1b[48;2;1;2;3my\n"))
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, log []byte) {
		if len(log) > 64<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := filter.Options{Symbolizer: s, Patience: patient, Display: filter.Display{Own: new(findings.Own)}}
		page, text := pageOf(t, log, o)
		checkPage(t, page, text)
		checkPage(t, largePage(t, log, o, 7), text)
		fuzztest.Growth(t, log, func(log []byte) { largePage(t, log, o, len(log)) })
	})
}

// injections are texts that would be markup or script if one field were not escaped.
var injections = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' onclick='alert(1)", "</pre></code></summary></details>", "</title></style>",
	"-->]]>&lt;&#60;&amp", "javascript:alert(1)", "\u202e\u2028\ufeff", "\xff\xc0\xbc", "+ADw-script+AD4-", "\x01\x02\x03\x04 7\x04\x05", everyByte(),
}

func everyByte() string {
	b := make([]byte, 0, 256)
	for i := range 256 {
		if i != '\n' {
			b = append(b, byte(i))
		}
	}
	return string(b)
}

// hostileLog returns a log with s in each field that takes any text.
func hostileLog(s string) string {
	log := s + ` {{{symbol:S}}} {{{dumpfile:S:S}}} {{{module:9:S:elf:S}}} {{{S}}}
{{{module:0:S:elf:a0a1a2a3a4a5a6a7}}}
{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}
{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}
{{{module:1:/S/S:elf:bb}}}
{{{mmap:0x700000:0x1000:load:1:rx:0}}}
S
{{{bt:0:0x50017b:ra:S}}} S
S{{{bt:1:0x700018:ra}}}S
{{{bt:2:0x700018:ra:S}}}
{{{bt:3:0x10:ra:S}}}
S {{{pc:0x50018d:S}}} {{{pc:0x50018d}}} {{{data:0x5011dc}}} {{{data:0x700000}}}
S {{{hexdict: S: 0x50018d S: 0x5011dc S: 0x700000 b: 0x7}}} S
S{{{hexdict: S:
 S: 0x50018d S: 0x700000 }}}S
    #0 0x55d012340138  (/S/S+0x400138) (BuildId: a0a1a2a3a4a5a6a7)
    #1 0x55d012340138  (/S/S+0x138) (BuildId: bb) S
    #2 0x55d012340138 in S (/S/S+0x138) (BuildId: S)
    #3 0x55d012340138 in S S:7
S`
	return strings.ReplaceAll(log, "S", s)
}

// In each field of a log, in file names and in process keys, every byte and every injection must be
// shown as text.
func TestNoFieldOfALogIsMarkup(t *testing.T) {
	fuzztest.WithoutRace(t)
	key := regexp.MustCompile(`^(?s)(.*?) `)
	for _, s := range append(injections, logtest.Hostile...) {
		o := filter.Options{Symbolizer: testSymbolizer(t), Patience: patient, Display: filter.Display{Own: new(findings.Own)}}
		o.Paths.Map = []buildid.PrefixMap{{Old: "/src", New: s}}
		for _, o.ProcessKey = range []*regexp.Regexp{nil, key} {
			o.Paths.Source, o.Paths.Link = nil, nil
			page, text := pageOf(t, []byte(hostileLog(s)), o)
			checkPage(t, page, text)
			o.Paths.Source = func(_ symbolize.Location, f *symbolize.Frame) symbolize.Snippet {
				return symbolize.Snippet{First: f.Line, Lines: [][]byte{[]byte(s), []byte(s)}, Origin: s}
			}
			o.Paths.Link = func(dst []byte, _ symbolize.Location, _ *symbolize.Frame) ([]byte, bool) {
				return append(dst, `https://example.org/?"'<>&#&lt;`...), true
			}
			page, _ = pageOf(t, []byte(hostileLog(s)), o)
			p := checkPage(t, page, text)
			if o.ProcessKey == nil && s != everyByte() && len(p.Find("details", "b o")) == 0 {
				t.Errorf("%q: no backtrace", s)
			}
			checkPage(t, largePage(t, []byte(hostileLog(s)), o, 100), text)
		}
		page := New(s)
		page.Input(s)
		if p, err := pagetest.Parse(page.AppendRest(nil)); err != nil {
			t.Error(err)
		} else if title := p.Find("title", "")[0]; title != string(escape.AppendText(nil, s, "\t")) {
			t.Errorf("the title is %q, want %q", title, s)
		}
	}
}

// The pages are compared without style and script. With UPDATE=1, the test writes the expected
// pages.
func TestPagesOfCrashes(t *testing.T) {
	crash := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../testdata/debug")}})
	t.Cleanup(func() { crash.Close() })
	for _, tt := range []struct {
		log, golden string
		symbolizer  *symbolize.Symbolizer
	}{
		{"../../testdata/crash.log", "testdata/html/crash.html", crash},
		{"testdata/html/asan.log", "testdata/html/asan.html", testSymbolizer(t)},
	} {
		log, err := os.ReadFile(tt.log)
		if err != nil {
			t.Fatal(err)
		}
		o := filter.Options{Symbolizer: tt.symbolizer, Patience: patient, Display: filter.Display{Own: new(findings.Own)}}
		page, text := pageOf(t, log, o)
		checkPage(t, page, text)
		_, body, _ := strings.Cut(string(page), "<body>\n")
		body, _, _ = strings.Cut(body, "<script>")
		if os.Getenv("UPDATE") == "1" {
			if err := os.WriteFile(tt.golden, []byte(body), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(tt.golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), body); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.log, diff)
		}
	}
}

// Values of a hexdict must become buttons. If the hexdict began in an earlier line, the buttons
// must be in its footnotes.
func TestValuesOfAPage(t *testing.T) {
	const head = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}\n"
	page, text := pageOf(t, []byte(head+"regs {{{hexdict: A: 0x50018d B: 7 C: 0x5011dc D: 0x000050018d E: 0x1}}}\nregs {{{hexdict:\n A: 0x50018d B: 7\n C: 0x5011dc}}} end\n"),
		filter.Options{Symbolizer: testSymbolizer(t), Patience: patient})
	p := checkPage(t, page, text)
	got := strings.Join(p.Find("button", ""), " ") + "\n" + strings.Join(p.Find("div", ""), "\n")
	want := `0x50018d 0x5011dc 0x000050018d 0x50018d 0x5011dc
barea.out+0x40018d · build ID a0a1a2a3a4a5a6a7
table[3].refsa.out+0x4011dc · build ID a0a1a2a3a4a5a6a7
barea.out+0x40018d · build ID a0a1a2a3a4a5a6a7`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A page may have millions of frames with few addresses, so a frame seen before must not allocate
// memory.
func TestHotFramesOfPagesAllocateNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	page := New("log")
	page.html.Limit(500, 2)
	f := filter.New(io.Discard, filter.Options{Printer: page, Symbolizer: testSymbolizer(t), Patience: patient})
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n")
	var log []byte
	for range 20 {
		log = append(log, "a line before them\n"...)
		for i := range 15 {
			log = fmt.Appendf(log, "{{{bt:%d:0x50017a:ra}}}\n", i)
		}
	}
	write := func() {
		if _, err := f.Write(log); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		write()
	}
	if n := testing.AllocsPerRun(100, write); n >= 3 {
		t.Errorf("20 backtraces of 15 frames allocate %v times", n)
	}
}
