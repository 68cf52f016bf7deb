package markup_test

import (
	"strings"
	"testing"

	"github.com/symfilter/symfilter/markup"
)

// TestNamesThatTheFormatCannotHold prints elements with values that no parser returns, such as a
// name with "}}}". Each output must be a well-formed element.
func TestNamesThatTheFormatCannotHold(t *testing.T) {
	for _, tt := range []struct {
		e    markup.Element
		want string
	}{
		{markup.Symbol{Name: "a}}}b\n"}, `{{{symbol:a\x7d\x7d\x7db\x0a}}}`},
		{markup.Symbol{Name: "-[Foo bar:]"}, `{{{symbol:-[Foo bar\x3a]}}}`},
		{markup.Symbol{Name: "f::"}, `{{{symbol:f\x3a\x3a}}}`},
		{markup.Symbol{Name: "f:::g"}, `{{{symbol:f\x3a::g}}}`},
		{markup.Symbol{Name: "{{{reset"}, `{{{symbol:\x7b{{reset}}}`},
		{markup.Symbol{Name: "{{{{pc:0x1"}, `{{{symbol:{\x7b{{pc\x3a0x1}}}`},
		{markup.Module{Name: "a{{{b}\n", BuildID: id(t, "aa")}, `{{{module:0:a\x7b{{b\x7d\x0a:elf:aa}}}`},
		{markup.Module{Name: "a"}, `{{{module:0:a:elf:00}}}`},
		{markup.DumpFile{Type: "a:b", Name: "c:d{{{{"}, `{{{dumpfile:a\x3ab:c\x3ad\x7b\x7b{{}}}`},
		{markup.HexDict{Body: "A: 0x1\n}}} {{{pc:0x1"}, "{{{hexdict:A: 0x1\n\\x7d\\x7d\\x7d \\x7b{{pc:0x1}}}"},
		{markup.Reset{Extra: "a}"}, `{{{reset:a\x7d}}}`},
		{markup.MMap{Mode: 0xff}, "{{{mmap:0x00:0x0:load:0:rwx:0x00}}}"},
		{markup.PC{Kind: 9}, "{{{pc:0x00}}}"},
		{markup.BT{Message: "ra"}, `{{{bt:0:0x00:\x72a}}}`},
		{markup.BT{Message: "pc:x}"}, `{{{bt:0:0x00:\x70c:x\x7d}}}`},
		{markup.BT{Kind: markup.Precise, Message: "ra"}, "{{{bt:0:0x00:pc:ra}}}"},
	} {
		got := string(tt.e.AppendMarkup(nil))
		if got != tt.want {
			t.Errorf("%#v: got %q, want %q", tt.e, got, tt.want)
		}
		wantOneElement(t, tt.e)
	}
	long := strings.Repeat("}", 10000)
	for _, e := range []markup.Element{
		markup.Symbol{Name: long + "{{{a"}, markup.Module{Name: long, BuildID: id(t, strings.Repeat("a", 128))},
		markup.HexDict{Body: long}, markup.DumpFile{Type: long, Name: long}, markup.Reset{Extra: long},
		markup.BT{Message: long},
	} {
		wantOneElement(t, e)
	}
	for n := 16<<10 - 200; n < 16<<10; n++ { // cuts the name at each offset of its end
		wantOneElement(t, markup.Symbol{Name: strings.Repeat("a", n) + "{{{abc d::e" + long})
	}
}

// wantOneElement checks that e prints as one well-formed element.
func wantOneElement(t *testing.T, e markup.Element) {
	t.Helper()
	line := e.AppendMarkup(nil)
	var s markup.Scanner
	s.Reset(line)
	tok, _ := s.Next()
	if tok.Kind != markup.Elem || len(tok.Raw) != len(line) || tok.Tag == markup.TagUnknown {
		t.Errorf("%#v prints as %q, which is no element: %v", e, line, tok.Err)
	}
}

func TestMode(t *testing.T) {
	for m, want := range []string{"", "x", "w", "wx", "r", "rx", "rw", "rwx"} {
		if got := markup.Mode(m).String(); got != want {
			t.Errorf("%d: got %q, want %q", m, got, want)
		}
	}
}
