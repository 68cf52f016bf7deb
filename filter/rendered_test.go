package filter

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/symbolize"
)

// A frame must be printed without a column if the debug information has none. Compilers omit
// columns with -gno-column-info, and Go's tables have no columns.
func TestFramesWithoutColumnHaveNone(t *testing.T) {
	w := renderer{paths: &Paths{}}
	m := newModule(0, testID, "a.out")
	d := w.frames([]symbolize.Frame{{Func: "f", File: "/a.cc", Line: 7}, {Func: "g", File: "/a.cc", Line: 9, Column: 3}, {Func: "h"}}, m, 0x10, false)
	a := &answer{mod: m, addr: 0x10, rel: 0x10, text: rendered{string(d.text), d.renderedParts}, hasText: true}
	want := `    #1.1  0x0000000000000010 f /a.cc:7 (a.out+0x10)
    #1.2  0x0000000000000010 g /a.cc:9:3 (a.out+0x10)
    #1    0x0000000000000010 h (a.out+0x10)
#1 f /a.cc:7 (a.out+0x10) inlined into g /a.cc:9:3 inlined into h
`
	for _, color := range []Color{ColorKeep, ColorAlways} {
		l := &lineFilter{printing: printing{layout: layout.Line{Colors: layout.Colors(color)}}}
		e := frameFields{number: 1, addr: 0x10}
		for i := range a.text.cuts {
			l.frame(&e, a, i)
			l.layout.NextLine(newline)
		}
		l.frameInSentence(&e, a)
		l.layout.NextLine(newline)
		if diff := cmp.Diff(string(layout.WithoutColor(l.layout.Buf)), want); diff != "" {
			t.Errorf("colour %d (-got +want)\n%s", color, diff)
		}
	}
}

func TestFramesOfAddressZeroAreNotUnresolved(t *testing.T) {
	f := New(io.Discard, Options{})
	io.Copy(f, strings.NewReader("{{{bt:0:0x0}}}\nat {{{bt:0:0}}}\n{{{bt:1:0x1}}}\n{{{bt:2:0:ra}}}\n"))
	f.Close()
	if _, n := f.Unresolved(); n != 2 {
		t.Errorf("got %d unresolved frames, want those of lines 3 and 4", n)
	}
}
