package input

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

var update = flag.Bool("update", false, "write what comes out into the scripts")

// testOptions returns options that resolve the addresses of package filter's fixture.
func testOptions(t testing.TB) filter.Options {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../filter/testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return filter.Options{Symbolizer: s, Patience: filter.Patience{Local: time.Minute, Servers: time.Minute}}
}

// newWriter returns a Writer for logs. It panics if a log is recognised as a report or a profile.
func newWriter(f Format, o filter.Options, out io.Writer) *Writer {
	return New(f, Translators{
		Markup:    func() io.WriteCloser { return filter.New(out, o) },
		Container: func(f Format) io.WriteCloser { return NewEnvelope(f, o, out) },
		Valgrind:  func() io.WriteCloser { panic("a log is taken for a report") },
		Callgrind: func() io.WriteCloser { panic("a log is taken for a profile") },
		RTrace:    func() io.WriteCloser { panic("a log is taken for a trace") },
	})
}

// envelope filters a log: in one block, or in random blocks if r is not nil.
func envelope(t testing.TB, f Format, o filter.Options, in string, r *rand.Rand) string {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(f, o, &b)
	for rest := in; rest != ""; {
		n := len(rest)
		if r != nil {
			n = min(n, 1+r.IntN(1+r.IntN(200)))
		}
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each of testdata/envelope/*.txtar shows one behaviour. The file "in" is filtered with the options
// in the comment's "options:" line; "out" is the expected output. A \ at the end of a line means
// that the line has no line end.
func TestEnvelopes(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, s := range scripts(t, "envelope") {
		t.Run(s.name(), func(t *testing.T) { runEnvelope(t, &s) })
	}
}

func runEnvelope(t *testing.T, s *script) {
	in := strings.ReplaceAll(string(s.Files[0].Data), "\\\n", "")
	o, format := testOptions(t), Auto
	for name, value := range s.options() {
		switch name {
		case "input":
			format = Format(slices.Index(Names(), value))
		case "json":
			o.Output = filter.JSON
		case "terminal":
			o.Terminal, o.Color = true, filter.ColorAlways
		case "color":
			o.Color = map[string]filter.Color{"always": filter.ColorAlways, "never": filter.ColorNever}[value]
		case "process-key":
			o.ProcessKey = regexp.MustCompile(value)
		default:
			t.Fatalf("option %q?", name)
		}
	}
	out := envelope(t, format, o, in, nil)
	shown := strings.ReplaceAll(out, "\x1b", `\e`)
	if !strings.HasSuffix(shown, "\n") {
		shown += "\\\n"
	}
	s.check(t, shown)
	for seed := range uint64(20) {
		if got := envelope(t, format, o, in, rand.New(rand.NewPCG(seed, 0))); got != out {
			t.Fatalf("blocks change what comes out:\n%s", cmp.Diff(got, out))
		}
	}
	step := 1 + len(in)/120
	if os.Getenv("TEST_LONG") == "1" {
		step = 1
	}
	for cut := 0; cut < len(in); cut += step {
		if got := interrupted(t, format, o, in, cut); got != out {
			t.Fatalf("cut at %d, %.60q: (-restored +uninterrupted)\n%s", cut, in[cut:], cmp.Diff(got, out))
		}
	}
}

// interrupted filters in[:cut] with one Writer, and the rest with another Writer that continues
// from the first one's context.
func interrupted(t *testing.T, f Format, o filter.Options, in string, cut int) string {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(f, o, &b)
	io.WriteString(w, in[:cut])
	context, ok := w.AppendContext(nil)
	if !ok {
		t.Fatal("no context")
	}
	g := newWriter(f, o, &b)
	if err := g.Restore(context); err != nil {
		t.Fatalf("cut at %d: %v in\n%s", cut, err, context)
	}
	if again, _ := g.AppendContext(nil); !bytes.Equal(again, context) {
		t.Fatalf("cut at %d: the context of what was restored (-got +want)\n%s", cut, cmp.Diff(string(again), string(context)))
	}
	io.WriteString(g, in[cut:])
	g.Close()
	return b.String()
}

// A module line that waits for its maps must get the envelope of its own line.
func TestMembersOfObjects(t *testing.T) {
	const in = "2026-11-20T10:00:01Z stdout F {{{module:0:a:elf:aa}}}\n" +
		"2026-11-20T10:00:02Z stderr F {{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n" +
		"2026-11-20T10:00:03Z stderr F text\nno envelope\n"
	const want = `{"v":1,"file":"x","time":"2026-11-20T10:00:01Z","stream":"stdout","text":"[[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x1fff](rx)]]]","elements":[{"tag":"module","id":0,"module":"a","build_id":"aa","maps":[{"start":"0x1000","end":"0x1fff","mode":"rx","offset":"0x0"}]}]}
{"v":1,"file":"x","time":"2026-11-20T10:00:03Z","stream":"stderr","text":"text"}
{"v":1,"file":"x","text":"no envelope"}
`
	o := filter.Options{Output: filter.JSON, Members: func(dst []byte, _ int64) []byte { return append(dst, `,"file":"x"`...) }}
	if d := cmp.Diff(envelope(t, CRI, o, in, nil), want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

func TestRefusedContexts(t *testing.T) {
	w := newWriter(CRI, filter.Options{}, io.Discard)
	io.WriteString(w, "2026-11-20T10:00:00Z stdout F one\n2026-11-20T10:00:00Z stdout P two")
	context, _ := w.AppendContext(nil)
	for _, test := range []struct{ context, want string }{
		{string(context), ""},
		{`{"input":"cri"}` + "\n" + `{"envelope":"cri","streams":[{},{}]}` + "\n{{{context:1}}}\n", "restore the context of an input: written by another version of symfilter: version 1, not 2"},
		{string(context[:len(context)-9]), "restore the context of an input: cut off: the end is missing"},
		{`{"v":2,"input":"other"}`, `restore the context of an input: damaged: "other" is not a format`},
		{`{"v":2,"input":"docker"}`, "restore the context of an input: saved from an input of format docker, not cri"},
		{`{"v":2,"input":"cri","context":{}}`, "restore the context of a container's log: written by another version of symfilter: version 1, not 2"},
		{strings.Replace(string(context), `"line":`, `"line":-`, 1), "restore the context of a log: damaged: the counters are out of range"},
		{strings.Replace(string(context), `"tail":"`, `"tail":"\n`, 1), "restore the context of a container's log: damaged: its last line is not an unfinished line of format cri"},
	} {
		got := ""
		if err := newWriter(CRI, filter.Options{}, io.Discard).Restore([]byte(test.context)); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.context, got, test.want)
		}
	}
}

// A generator writes the log of a container, as its runtime does.
type generator struct {
	*rand.Rand
	format Format
	clock  int
	words  int
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// word returns an unused word without digits.
func (g *generator) word() string {
	g.words++
	return "w" + strings.Map(func(r rune) rune { return r - '0' + 'A' }, fmt.Sprint(g.words)) + "w"
}

// text returns random text. If plain is set, the text has no markup.
func (g *generator) text(plain bool) string {
	words := []string{g.word(), g.word() + " ", "[7] ", " ", "{", "{{", "}}}", `"`, `\`, "\t", "é", "\u2028", "<a&b>", "\x1b[31m", "\x1b[0m", "\xff", " stdout P ", "\r", "😀"}
	if plain {
		if g.format == Docker {
			words = slices.DeleteFunc(words, func(s string) bool { return s == "{" || s == "{{" || s == "\xff" })
		}
		return pick(g, words...) + "."
	}
	return pick(g, append(words, "{{{", "{{{other:1}}}", "{{{symbol:_ZN2ns5innerEi}}}", "{{{pc:0x50017a:pc}}}",
		fmt.Sprintf("{{{bt:%d:0x50017a:pc}}}", g.IntN(20)), fmt.Sprintf("{{{bt:%d:0x500140}}}", g.IntN(20)), "{{{data:0x5011c4}}}", "{{{hexdict: A: 0x50018d}}}", "{{{reset}}}",
		"{{{module:1:b.so:elf:b0b1b2b3b4b5b6b7}}}", "{{{mmap:0x700000:0x1000:load:1:r:0x0}}}")...)
}

func (g *generator) line(plain bool) string {
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString(g.text(plain))
	}
	return b.String()
}

// sealed returns a part of a line with the runtime's envelope.
func (g *generator) sealed(stream, text string, whole bool) string {
	g.clock += 1 + g.IntN(1000)
	at := fmt.Sprintf("2096-10-06T00:%02d:%02d.%dZ", g.clock/60000%60, g.clock/1000%60, g.clock%1000)
	if g.format == Docker {
		if whole {
			text += "\n"
		}
		return string(appendQuoted([]byte(`{"log":"`), []byte(text), true, false)) + `","stream":"` + stream + `","time":"` + at + "\"}\n"
	}
	tag := "P"
	if whole {
		tag = "F"
	}
	return at + " " + stream + " " + tag + " " + text + "\n"
}

// log returns a container's log of lines, and the lines in the order of their ends. If parts is
// set, some lines are in parts.
func (g *generator) log(lines []string, streams []string, parts bool) (log string, ended []string) {
	var b strings.Builder
	rest := make(map[string]string)
	begun := make(map[string]string)
	for _, line := range lines {
		stream := pick(g, streams...)
		if before, ok := begun[stream]; ok {
			b.WriteString(g.sealed(stream, rest[stream], true))
			ended = append(ended, before)
			delete(begun, stream)
		}
		text := line
		for parts && g.IntN(3) == 0 && len(text) > 0 {
			n := g.IntN(len(text) + 1)
			if g.format == Docker {
				for n < len(text) && text[n]&0xc0 == 0x80 {
					n++
				}
			}
			b.WriteString(g.sealed(stream, text[:n], false))
			text = text[n:]
			begun[stream] = line
		}
		if begun[stream] != "" && g.IntN(2) == 0 {
			rest[stream] = text
			continue
		}
		b.WriteString(g.sealed(stream, text, true))
		ended = append(ended, line)
		delete(begun, stream)
	}
	for stream, line := range begun {
		b.WriteString(g.sealed(stream, rest[stream], true))
		ended = append(ended, line)
		break // the other line is incomplete
	}
	return b.String(), ended
}

const maps = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}"

func TestContainerLogWithoutMarkupIsUntouched(t *testing.T) {
	for _, format := range []Format{CRI, Docker} {
		for seed := range uint64(80) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
			var lines []string
			for range 1 + g.IntN(30) {
				lines = append(lines, g.line(true))
			}
			in, _ := g.log(lines, []string{"stdout", "stderr"}, true)
			if g.IntN(3) == 0 {
				at := strings.LastIndexByte(in[:g.IntN(len(in))], '\n') + 1
				in = in[:at] + pick(g, "\n", "no envelope\n", "\x00\xff\r\n", "2016-10-06T00:17:09Z stdout X a\n", "{\"log\":\"x\\q\\n\",\"stream\":\"stdout\"}\n", "{\"log\":\"x\",\"stream\":\"other\"}\n", strings.Repeat("x", maxLine+9)+"\n") + in[at:]
			}
			if g.IntN(3) == 0 {
				in = in[:g.IntN(len(in))]
			}
			if got := envelope(t, format, filter.Options{}, in, g.Rand); got != in {
				t.Fatalf("%v, seed %d: a log without markup changed:\n%s", format, seed, cmp.Diff(got, in))
			}
		}
	}
}

// opened returns the lines of a container's log, with joined parts. It does not use the tested
// parser.
func opened(t *testing.T, f Format, log string) (lines []string) {
	t.Helper()
	part := make(map[string]string)
	for line := range strings.Lines(log) {
		var stream, text string
		whole := false
		if f == Docker {
			var of struct{ Log, Stream, Time string }
			if err := json.Unmarshal([]byte(line), &of); err != nil || of.Time == "" {
				t.Fatalf("%v in %q", err, line)
			}
			stream = of.Stream
			text, whole = strings.CutSuffix(of.Log, "\n")
		} else {
			m := regexp.MustCompile(`(?s)^\d+-\d+-\d+T\d+:\d+:\d+(?:\.\d+)?Z (stdout|stderr) ([FP]) (.*)\n$`).FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("%q is no line of CRI", line)
			}
			stream, text, whole = m[1], m[3], m[2] == "F"
		}
		part[stream] += text
		if whole {
			lines = append(lines, part[stream])
			delete(part, stream)
		}
	}
	return lines
}

func TestContainerLogIsFilteredAsWhatItHolds(t *testing.T) {
	o := testOptions(t)
	for _, format := range []Format{CRI, Docker} {
		for _, color := range []filter.Color{filter.ColorKeep, filter.ColorAlways, filter.ColorNever} {
			for seed := range uint64(60) {
				o.Color = color
				g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
				lines := []string{maps, "."}
				for range 1 + g.IntN(30) {
					line := strings.ToValidUTF8(g.line(false), "?")
					if strings.Contains(line, "{{{m") {
						// module lines could merge, and the result would depend on the parts
						// already printed
						line += g.word()
					}
					lines = append(lines, line)
				}
				in, ended := g.log(lines, []string{"stdout"}, true)
				var plain bytes.Buffer
				f := filter.New(&plain, o)
				io.WriteString(f, strings.Join(ended, "\n")+"\n")
				f.Close()
				out := envelope(t, format, o, in, g.Rand)
				want := strings.Split(strings.TrimSuffix(plain.String(), "\n"), "\n")
				got := opened(t, format, out)
				if d := cmp.Diff(got, want); d != "" {
					t.Fatalf("%v, colour %d, seed %d: (-got +want)\n%s\nlog:\n%s", format, color, seed, d, in)
				}
			}
		}
	}
}

// Lines that arrive in parts must be printed when they are whole, in the order of their ends.
func TestTwoStreamsOfAContainerAreOneProcess(t *testing.T) {
	o := testOptions(t)
	o.Output = filter.JSON
	for _, format := range []Format{CRI, Docker} {
		for seed := range uint64(60) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
			lines := []string{maps, "."}
			for range 1 + g.IntN(30) {
				lines = append(lines, strings.ToValidUTF8(g.line(false), "?"))
			}
			in, ended := g.log(lines, []string{"stdout", "stderr"}, true)
			var plain bytes.Buffer
			f := filter.New(&plain, o)
			io.WriteString(f, strings.Join(ended, "\n")+"\n")
			f.Close()
			out := regexp.MustCompile(`(?m)^(\{"v":1),"time":"[^"]+","stream":"std(?:out|err)"`).ReplaceAllString(envelope(t, format, o, in, g.Rand), "$1")
			if !strings.HasPrefix(out, plain.String()) { // the last line of the other stream may have no end
				t.Fatalf("%v, seed %d: (-got +want)\n%s\nlog:\n%s", format, seed, cmp.Diff(out, plain.String()), in)
			}
		}
	}
}

func TestContainerContextGoesOnAsIfUninterrupted(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := testOptions(t)
	o.Cache = filter.NewCache(0)
	for _, output := range []filter.Output{filter.Text, filter.JSON} {
		o.Output = output
		for _, format := range []Format{CRI, Docker} {
			for seed := range uint64(12) {
				g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
				lines := []string{maps}
				for range 1 + g.IntN(20) {
					lines = append(lines, g.line(false))
				}
				in, _ := g.log(lines, []string{"stdout", "stderr"}, true)
				want := envelope(t, Auto, o, in, nil)
				for cut := range in {
					if in[cut] == '\n' || g.IntN(50) == 0 {
						if got := interrupted(t, Auto, o, in, cut+g.IntN(2)); got != want {
							t.Fatalf("%v, seed %d, cut at %d: (-restored +uninterrupted)\n%s", format, seed, cut, cmp.Diff(got, want))
						}
					}
				}
			}
		}
	}
}

func TestPartsWithoutEndAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, format := range []Format{CRI, Docker} {
		for _, text := range []string{"x", "{{{pc:0x1", strings.Repeat("y", 16<<10), strings.Repeat("{{{bt:0:0x", 1600), ""} {
			g := &generator{Rand: rand.New(rand.NewPCG(1, 1)), format: format}
			line := g.sealed("stdout", text, false)
			size := len(line)
			var out bytes.Buffer
			w := newWriter(format, filter.Options{}, &out)
			io.WriteString(w, line)
			for size < 5<<20 {
				io.WriteString(w, line)
				size += len(line)
			}
			e := w.dst.(*Envelope)
			for _, s := range e.streams {
				if n := cap(s.out) + cap(s.text) + cap(s.raw); n > 16<<20 {
					t.Errorf("%v, parts of %.10q: %d bytes are held", format, text, n)
				}
			}
			io.WriteString(w, g.sealed("stdout", "end", true))
			w.Close()
			if got := out.Len(); got < size {
				t.Errorf("%v, parts of %.10q: %d bytes came out of %d", format, text, got, size)
			}
		}
	}
}

func TestHeldPartsAreSearchedOnce(t *testing.T) {
	for _, format := range []Format{CRI, Docker} {
		g := &generator{Rand: rand.New(rand.NewPCG(1, 1)), format: format}
		var out bytes.Buffer
		w := newWriter(format, filter.Options{}, &out)
		part := strings.Repeat("x", 10_000)
		others := strings.Repeat(g.sealed("stderr", "line", true), 100)
		io.WriteString(w, g.sealed("stdout", part+"{", false)+g.sealed("stdout", "{{pc:0x", false)+others)
		s := &w.dst.(*Envelope).streams[0]
		if !s.marked || s.searched > 2*len(part) {
			t.Errorf("%v: %d bytes of %d were searched; markup is found: %v", format, s.searched, len(s.text), s.marked)
		}
		io.WriteString(w, g.sealed("stdout", "1}}}", true))
		w.Close()
		if !strings.HasPrefix(out.String(), others) || !strings.Contains(out.String(), "[[[pc:0x1]]]") {
			t.Errorf("%v: %.200q came out", format, out.String())
		}
	}
}

func TestEnvelopesCostLittle(t *testing.T) {
	for format, line := range map[Format]string{
		CRI:    "2016-10-06T00:17:09.669794202Z stdout F Permitted: {\"a\": {\"b\": 1}}\n",
		Docker: "{\"log\":\"Permitted: {\\\"a\\\": {\\\"b\\\": 1}}\\n\",\"stream\":\"stdout\",\"time\":\"2019-01-01T11:11:11.111111111Z\"}\n",
	} {
		block := []byte(strings.Repeat(line, 2000))
		var w writes
		in := newWriter(Auto, filter.Options{}, &w)
		in.Write(block)
		w = 0
		if got := testing.AllocsPerRun(20, func() { in.Write(block) }); got > 0 {
			t.Errorf("%v: %v allocations a block", format, got)
		}
		if w != 21 {
			t.Errorf("%v: %d writes for 21 blocks", format, w)
		}
	}
}

type writes int

func (w *writes) Write(p []byte) (int, error) { *w++; return len(p), nil }

// FuzzEnvelope filters any log of a container. Filtering must neither fail nor hang. Blocks and
// interruptions must not change the output. The output of a valid log must be a valid log.
func FuzzEnvelope(f *testing.F) {
	for seed := range uint64(8) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: []Format{CRI, Docker}[seed%2]}
		lines := []string{maps}
		for range 20 {
			lines = append(lines, g.line(false))
		}
		in, _ := g.log(lines, []string{"stdout", "stderr"}, true)
		f.Add([]byte(in), byte(seed))
	}
	f.Add([]byte(`{"log":"\ud83d\u0000\ud83d\ude00\/ {{{pc:0x1}}}\n","stream":"stdout","attrs":{"a":"`+"\xff"+`"},"time":"x"}`), byte(3))
	f.Add([]byte("2016-10-06T00:17:09+02:00 stderr P:x {{{\n2016-10-06T00:17:09.1-02:00 stderr F:y:z reset}}}"), byte(0))
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > 64<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		format := []Format{CRI, Docker}[mode>>4&1]
		o, whole := inMode(t, format, o, log, mode)
		fuzztest.Growth(t, log, func(log []byte) {
			w := newWriter(format, o, io.Discard)
			w.Write(log)
			w.Close()
		})
		var flowed bytes.Buffer
		fuzztest.Flow(t, log, newWriter(format, o, &flowed), flowed.Len, "a line of no container\n", 0)
		if !o.Terminal && !o.Dialects.Elements { // after a restart, modules are invented again
			if got := interrupted(t, format, o, string(log), len(log)/2); got != whole {
				t.Fatalf("an interruption changes what comes out:\n%s", cmp.Diff(got, whole))
			}
		}
		if o.Output == filter.Text && !o.Terminal && isLog(format, string(log)) && !isLog(format, whole) {
			t.Fatalf("%q comes out as %q, which is no log of a container", log, whole)
		}
		if o.Output == filter.Text && o.Color == filter.ColorKeep && !o.Terminal && !o.Dialects.Elements && !bytes.Contains(log, markupOpen) && !bytes.Contains(log, []byte("{")) && whole != string(log) {
			t.Fatalf("a log without markup changed: %q", whole)
		}
	})
}

// inMode adds the options of mode to o, and returns them with the output for log. It fails the test
// if the output depends on the sizes of blocks, except for a terminal.
func inMode(t *testing.T, format Format, o filter.Options, log []byte, mode byte) (filter.Options, string) {
	t.Helper()
	o.Color, o.Terminal = filter.Color(mode%3), mode&4 != 0
	if mode&8 != 0 {
		o.Output, o.Terminal = filter.JSON, false
	}
	if mode&32 != 0 {
		o.Dialects.Elements, o.Output, o.Color, o.Terminal = true, filter.Text, filter.ColorKeep, false
	}
	whole := envelope(t, format, o, string(log), nil)
	if cut := envelope(t, format, o, string(log), rand.New(rand.NewPCG(uint64(mode), 7))); cut != whole && !o.Terminal {
		t.Fatalf("blocks change what comes out:\n%s", cmp.Diff(cut, whole))
	}
	return o, whole
}

// isLog reports whether each line has the format.
func isLog(f Format, log string) bool {
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		if f == Docker {
			if _, _, ok := openDocker([]byte(line), new([]byte)); !ok || !json.Valid([]byte(line)) {
				return false
			}
		} else if _, _, ok := openCRI([]byte(line), nil); !ok {
			return false
		}
	}
	return true
}

type pagePrinter struct{}

func (pagePrinter) AppendElement(dst []byte, e *filter.Element) []byte {
	return append(dst, e.Tag.String()...)
}

func (pagePrinter) AppendLine(dst []byte, l *filter.Line) []byte {
	return fmt.Appendf(dst, "<p id=%d>%q %d</p>\n", l.Number, l.Text, len(l.Elements))
}

func TestPrintersGetTheTextOfContainers(t *testing.T) {
	const (
		stdout = "2026-11-22T07:00:00Z stdout "
		stderr = "2026-11-22T07:00:00Z stderr "
		in     = stdout + "F plain\n" + stdout + "F {{{module:0:a:elf:aa00}}}\n" + stdout + "F {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
			stdout + "P {{{bt:0\n" + stderr + "F other\n" + stdout + "F :0x1100}}}\n" + stdout + "P pla\n" + stdout + "F in\n" + "bare\n"
		want = `<p id=1>"plain" 0</p>
<p id=2>"[[[ELF module #0x0 \"a\"; BuildID=aa00 [0x1000-0x1fff](rx)]]]" 1</p>
<p id=4>"other" 0</p>
<p id=5>"    #0    0x0000000000001100 (a+0x100) (BuildId: aa00)" 1</p>
<p id=6>"plain" 0</p>
<p id=7>"bare" 0</p>
`
	)
	if diff := cmp.Diff(want, envelope(t, CRI, filter.Options{Printer: pagePrinter{}}, in, nil)); diff != "" {
		t.Errorf("in one block (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, envelope(t, CRI, filter.Options{Printer: pagePrinter{}}, in, rand.New(rand.NewPCG(1, 2)))); diff != "" {
		t.Errorf("in pieces (-want +got):\n%s", diff)
	}
}
