package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/logtest"
)

// TestLogWithoutMarkupIsUntouched checks invariant 1 of ARCHITECTURE.md.
func TestLogWithoutMarkupIsUntouched(t *testing.T) {
	fuzztest.WithoutRace(t)
	for seed := range uint64(300) {
		g := logtest.NewGenerator(seed)
		var b strings.Builder
		for range g.IntN(60) {
			b.WriteString(logtest.Pick(g, g.Text(), "\n", "\r\n", "{{", "{ {{", "\x00", strings.Repeat("x", g.IntN(70000)), "\x1b[31m", "\x1b"))
			b.WriteString(".") // no three braces in a row
		}
		in := b.String()
		if got, _ := filterString(t, Options{}, in, g.Rand); got != in {
			t.Fatalf("seed %d: a log without markup changed:\n%s", seed, cmp.Diff(got, in))
		}
	}
}

var generatedWord = regexp.MustCompile(`w[A-J]+w`)

// TestTextAroundElementsIsKept checks invariant 2 of ARCHITECTURE.md: every word of the log is
// printed, in order. Lines of inlined calls repeat some words.
func TestTextAroundElementsIsKept(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for _, color := range []Color{ColorKeep, ColorAlways, ColorNever} {
		o.Color = color
		for seed := range uint64(500) {
			g := logtest.NewGenerator(seed)
			in := g.Log(40)
			out, _ := filterString(t, o, in, nil)
			rest := generatedWord.FindAllString(out, -1)
			for _, w := range generatedWord.FindAllString(in, -1) {
				i := 0
				for i < len(rest) && rest[i] != w {
					i++
				}
				if i == len(rest) {
					t.Fatalf("colour %d, seed %d: %q is lost from\n%s\nwhich came out as\n%s", color, seed, w, in, out)
				}
				rest = rest[i:]
			}
		}
	}
}

// TestChunkingAndProcessorsChangeNothing checks invariant 3 of ARCHITECTURE.md: filters that share
// a symbolizer and a cache print the same on any number of processors, for blocks of any size.
func TestChunkingAndProcessorsChangeNothing(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for _, color := range []Color{ColorKeep, ColorAlways, ColorNever} {
		o.Color = color
		for seed := range uint64(60) {
			in := logtest.NewGenerator(seed).Log(60)
			o.Cache = nil
			want, _ := filterString(t, o, in, nil)
			o.Cache = NewCache(1 << (10 + seed%14))
			for _, procs := range []int{1, 2, 5} {
				old := runtime.GOMAXPROCS(procs)
				var wg sync.WaitGroup
				for i := range uint64(4) {
					wg.Go(func() {
						if got, _ := filterString(t, o, in, rand.New(rand.NewPCG(seed, i))); got != want {
							t.Errorf("colour %d, seed %d: blocks change what comes out:\n%s", color, seed, cmp.Diff(got, want))
						}
					})
				}
				wg.Wait()
				runtime.GOMAXPROCS(old)
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// TestCompleteLinesAreOutWhenWriteReturns checks invariant 4 of ARCHITECTURE.md: after each line,
// the output so far equals the output for the log up to this line. Only a module line that is still
// collecting its maps may be missing.
func TestCompleteLinesAreOutWhenWriteReturns(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(60) {
		lines := strings.SplitAfter(logtest.NewGenerator(seed).Log(40), "\n")
		var b bytes.Buffer
		f := New(&b, o)
		for i, line := range lines {
			io.WriteString(f, line)
			if !strings.HasSuffix(line, "\n") {
				break
			}
			whole, _ := filterString(t, o, strings.Join(lines[:i+1], ""), nil)
			held, ok := strings.CutPrefix(whole, b.String())
			if !ok || strings.Count(held, "\n") > 1 || held != "" && !strings.Contains(held, "[[[ELF module") {
				t.Fatalf("seed %d: after line %d %q, still to come: %q", seed, i+1, line, held)
			}
		}
	}
}

// Flush, at any time, prints text earlier, but does not change the output of lines without
// contextual elements.
func TestFlushOnlyMovesOutputForward(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(300) {
		g := logtest.NewGenerator(seed)
		var log strings.Builder
		log.WriteString("{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n")
		for range 20 {
			for range g.IntN(4) {
				log.WriteString(logtest.Pick(g, g.Text, g.Presented, g.Broken, func() string { return "\x1b[31m" })())
			}
			log.WriteString(logtest.Pick(g, "\n", "\r\n", " "+g.Word()+g.Contextual()+"\n"))
		}
		in := log.String()
		for _, color := range []Color{ColorKeep, ColorNever, ColorAlways} {
			o.Color = color
			want, _ := filterString(t, o, in, nil)
			var b bytes.Buffer
			f := New(&b, o)
			for rest := in; rest != ""; {
				n := min(len(rest), 1+g.IntN(30))
				io.WriteString(f, rest[:n])
				if err := f.Flush(); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			f.Close()
			if d := cmp.Diff(b.String(), want); d != "" {
				t.Fatalf("seed %d (-flushed +whole):\n%s", seed, d)
			}
		}
	}
}

func TestPromptIsPassedOn(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"login: ", "login: "},
		{"a {{ b", "a {{ b"},
		{"see {{{", ""},
		{"see {{", ""},
		{"see {{{pc:0x12", ""},
		{"see {{{pc:0x12}}} and", ""},
		{"stray {{{ and so", "stray {{{ and so"},
	} {
		var b strings.Builder
		f := New(&b, Options{})
		io.WriteString(f, test.line)
		if b.String() != "" {
			t.Errorf("%q: passed on before Flush: %q", test.line, b.String())
		}
		f.Flush()
		if b.String() != test.want {
			t.Errorf("%q: Flush passed on %q, want %q", test.line, b.String(), test.want)
		}
		io.WriteString(f, "!\nnext\n")
		f.Close()
		if !strings.HasPrefix(b.String(), test.want) || !strings.HasSuffix(b.String(), "!\nnext\n") {
			t.Errorf("%q: the line came out as %q", test.line, b.String())
		}
	}
}

// A line longer than 1 MiB must not be interpreted, and little more than its first MiB may be
// buffered.
func TestLongLinesPassThrough(t *testing.T) {
	const size = 64 << 20
	piece := []byte(strings.Repeat("{{{symbol:_Z1fv}}} {{{", 1000))
	var count countWriter
	f := New(&count, Options{})
	for n := 0; n < size; n += len(piece) {
		f.Write(piece)
		if tail, _ := f.cut.Unfinished(); cap(tail) > 2*maxLine+len(piece) || cap(f.layout.Buf)+cap(f.ready) > 8*outputChunk {
			t.Fatalf("holds %d and %d bytes", cap(tail), cap(f.layout.Buf)+cap(f.ready))
		}
	}
	f.Write([]byte("\n{{{symbol:_Z1fv}}}\n"))
	f.Close()
	want := (size+len(piece)-1)/len(piece)*len(piece) + len("\n_Z1fv\n")
	if int(count) != want {
		t.Errorf("%d bytes came out, want %d", count, want)
	}
}

// If a line becomes too long after a Flush, each of its bytes is printed once: symbolized up to the
// last Flush, and unchanged after it.
func TestFlushedLinesThatGetTooLong(t *testing.T) {
	fuzztest.WithoutRace(t)
	const prompt = "a \x1b[31mprompt> "
	rest := strings.Repeat("{{{symbol:_Z1fv}}}\x1b[m", maxLine/16)
	for _, test := range []struct {
		name   string
		o      Options
		prompt string
	}{
		{"colours as they are", Options{}, prompt},
		{"no colours", Options{Color: ColorNever}, "a prompt> "},
		{"followed colours", Options{Color: ColorAlways}, prompt},
	} {
		for _, piece := range []int{1 << 10, maxLine - 1, maxLine, 4 << 20} {
			var b strings.Builder
			f := New(&b, test.o)
			io.WriteString(f, prompt)
			f.Flush()
			for line := rest; line != ""; {
				n := min(len(line), piece)
				io.WriteString(f, line[:n])
				line = line[n:]
			}
			f.Flush()
			io.WriteString(f, "\nnext\n")
			f.Close()
			want := test.prompt + rest + "\nnext\n"
			if test.o.Color == ColorNever {
				want = strings.ReplaceAll(want, "\x1b[m", "")
			}
			if b.String() != want {
				t.Errorf("%s, pieces of %d: %d bytes came out, want %d; they differ from byte %d on", test.name, piece, b.Len(), len(want), firstDifference(b.String(), want))
			}
		}
	}
}

type countWriter int

func (c *countWriter) Write(p []byte) (int, error) { *c += countWriter(len(p)); return len(p), nil }

func TestLineLimitDoesNotDependOnBlocks(t *testing.T) {
	for _, n := range []int{maxLine - 1, maxLine, maxLine + 1} {
		line := strings.Repeat("x", n-len("{{{symbol:a}}}")) + "{{{symbol:a}}}\n"
		want := line
		if n <= maxLine {
			want = strings.Replace(line, "{{{symbol:a}}}", "a", 1)
		}
		for _, block := range []int{1 << 10, maxLine, 4 << 20} {
			var b strings.Builder
			f := New(&b, Options{})
			for rest := line; rest != ""; {
				k := min(block, len(rest))
				io.WriteString(f, rest[:k])
				rest = rest[k:]
			}
			f.Close()
			if b.String() != want {
				t.Errorf("a line of %d bytes in blocks of %d: %d bytes came out, want %d", n, block, b.Len(), len(want))
			}
		}
	}
}

// FuzzFilter checks that no log makes the filter fail or hang, and that its memory is bounded. The
// division into blocks must change nothing, and text must be kept.
func FuzzFilter(f *testing.F) {
	for seed := range uint64(8) {
		f.Add([]byte(logtest.NewGenerator(seed).Log(20)), byte(seed))
	}
	f.Add([]byte(strings.Repeat("{{{", 3000)+"}}}"), byte(0))
	f.Add([]byte(strings.Repeat("{{{module:1:a:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x1000:0x1000:load:1:rx:0x400000}}}", 300)), byte(1))
	f.Add([]byte(strings.Repeat("\x1b[1m{{{pc:0x1}}}", 500)+"\n"), byte(2))
	f.Add([]byte("{{{hexdict:}}} "), byte(0))
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > 256<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := Options{Symbolizer: s, Patience: patient, Color: Color(mode % 3), ModuleLines: ModuleLines(mode >> 2 & 3)}
		whole, _ := filterString(t, o, string(log), nil)
		cut, _ := filterString(t, o, string(log), rand.New(rand.NewPCG(uint64(mode), 7)))
		if cut != whole {
			t.Fatalf("blocks change what comes out:\n%s", cmp.Diff(cut, whole))
		}
		if o.Color == ColorKeep && !bytes.Contains(log, markupOpen) && whole != string(log) {
			t.Fatalf("a log without markup changed: %q", whole)
		}
		checkLettersKept(t, log, whole, o)
		checkFlow(t, log, o)
	})
}

// checkFlow checks two properties of every Filter: its work is linear in the size of the log, and a
// complete line has been printed when Write returns.
func checkFlow(t *testing.T, log []byte, o Options) {
	t.Helper()
	fuzztest.Growth(t, log, func(log []byte) {
		f := New(io.Discard, o)
		f.Write(log)
		f.Close()
	})
	var out countWriter
	fuzztest.Flow(t, log, New(&out, o), func() int { return int(out) }, "a line\n", 0)
}

// checkLettersKept checks a part of invariant 2 of ARCHITECTURE.md: lines without anything like an
// element are printed unchanged, in order.
func checkLettersKept(t *testing.T, log []byte, out string, o Options) {
	if o.Color != ColorKeep {
		return
	}
	at := 0
	for line := range bytes.Lines(log) {
		text, _ := lines.CutEnd(line)
		if bytes.Contains(text, markupOpen) || len(text) == 0 {
			continue
		}
		i := strings.Index(out[at:], string(text))
		if i < 0 {
			t.Fatalf("the line %q is lost from %q", text, out)
		}
		at += i + len(text)
	}
}

func TestPlainLinesAndHotFramesAllocateLittle(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	f := New(io.Discard, o)
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n")
	for _, test := range []struct {
		name string
		line string
		max  float64
	}{
		{"plain line", "2026-11-20T10:00:00Z host svc[1]: an ordinary line {with} a {{brace}}\n", 0},
		{"hot bt with inlined calls", "[pfx] {{{bt:3:0x50017b:ra}}}\n", 0},
		{"hot bt without symbols", "{{{bt:3:0x50017b:pc}}}\n", 0},
		{"hot pc", "at {{{pc:0x50017a}}} x\n", 0},
		{"hot data", "at {{{data:0x5011c4}}} x\n", 0},
	} {
		line := []byte(test.line)
		f.Write(line)
		if got := testing.AllocsPerRun(200, func() { f.Write(line) }); got > test.max {
			t.Errorf("%s: %v allocations, want at most %v", test.name, got, test.max)
		}
	}
}

func TestWriterErrorsAreReturned(t *testing.T) {
	f := New(failing{}, Options{})
	if _, err := io.WriteString(f, "a\n"); err != errDiskFull {
		t.Errorf("Write: got %v, want %v", err, errDiskFull)
	}
	if err := f.Close(); err != errDiskFull {
		t.Errorf("Close: got %v, want %v", err, errDiskFull)
	}
}

type failing struct{}

var errDiskFull = fmt.Errorf("disk full")

func (failing) Write(p []byte) (int, error) { return 0, errDiskFull }

// The fast path for frames without colours must print the same as the general code.
func TestFrameHeads(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	var log strings.Builder
	log.WriteString("{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0xffff800000500000:0x2000:load:0:rx:0x400000}}}\n")
	for _, n := range []uint64{0, 1, 9, 10, 11, 99, 100, 999, 1000, 9999, 10000, 12345, 999999, 1 << 63} {
		fmt.Fprintf(&log, "{{{bt:%d:0xffff80000050017a:pc}}}\n", n)
	}
	quick, _ := filterString(t, o, log.String(), nil)
	o.Color = ColorAlways
	long, _ := filterString(t, o, log.String(), nil)
	if d := cmp.Diff(quick, sgrSequence.ReplaceAllString(long, "")); d != "" {
		t.Errorf("(-without +with colour)\n%s", d)
	}
}
