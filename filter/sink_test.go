package filter

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/markup"
)

// Text and typed elements must have the same output as the log that they were made from.
func TestSinkPrintsWhatWriteDoes(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(300) {
		in := logtest.NewGenerator(seed).Log(40)
		var b strings.Builder
		f := New(&b, o)
		var scan markup.Scanner
		for line := range strings.Lines(in) {
			text, eol := lines.CutEnd([]byte(line))
			scan.Reset(text)
			for {
				tok, ok := scan.Next()
				if !ok {
					break
				}
				if e, err := markup.Parse(tok); tok.Kind == markup.Elem && err == nil && e != nil {
					f.Element(e)
				} else {
					f.Text(tok.Raw)
				}
			}
			f.Text(eol)
		}
		f.Close()
		want, _ := filterString(t, o, in, nil)
		// an element without an answer is printed in the canonical form
		if got, want := canonical(b.String()), canonical(want); got != want {
			t.Fatalf("seed %d: (-sink +write)\n%s", seed, cmp.Diff(got, want))
		}
	}
}

var shownElement = regexp.MustCompile(`(\[\[\[|\{\{\{)[a-z]+(:[^\[\]{}]*)?(\]\]\]|\}\}\})`)

func canonical(s string) string { return shownElement.ReplaceAllString(s, "<element>") }

func TestSinkTextIsNotInterpreted(t *testing.T) {
	var b strings.Builder
	f := New(&b, Options{})
	f.Text([]byte("a {{{symbol:"))
	f.Text([]byte("main}}} b "))
	f.Element(markup.Symbol{Name: "main"})
	f.Text([]byte("\n{{{reset}}}\r\nlast"))
	f.Close()
	if got, want := b.String(), "a {{{symbol:main}}} b main\n{{{reset}}}\r\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Before the first call of EndBlock, the Filter must read the clock for each line that the Sink
// methods write. After this call, it must read the clock once for each block.
func TestSinkLinesHaveTheTimeOfTheirBlock(t *testing.T) {
	f := New(io.Discard, Options{})
	in := access.Filter(f).(interface{ EndBlock() })
	line := func() int64 {
		f.now = 1
		f.Element(markup.Reset{})
		f.Text(newline)
		return f.now
	}
	if got := line(); got != 0 {
		t.Errorf("without blocks, a line has the time %d of the line before", got)
	}
	in.EndBlock()
	if got := line(); got != 1 {
		t.Errorf("in a block, a line has the time %d, want that of the block", got)
	}
	in.EndBlock()
	if f.now != 0 {
		t.Errorf("a block has the time of the block before")
	}
}

var (
	sgrSequence    = regexp.MustCompile("\x1b\\[[0-9;:]*m")
	generatedColor = regexp.MustCompile("\x1b\\[[0-9;:]+m") // ESC [ may be text before an m
)

// The output with ColorAlways, with its colours removed, must equal the output with ColorNever.
func TestHighlightingOnlyAddsColour(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(300) {
		in := logtest.NewGenerator(seed).Log(40)
		o.Color = ColorAlways
		always, _ := filterString(t, o, in, nil)
		o.Color = ColorNever
		never, _ := filterString(t, o, in, nil)
		if left := generatedColor.FindString(never); left != "" {
			t.Fatalf("seed %d: %q is left in\n%s", seed, left, never)
		}
		if got := sgrSequence.ReplaceAllString(always, ""); got != never {
			t.Fatalf("seed %d: (-always +never)\n%s", seed, cmp.Diff(got, never))
		}
	}
}
