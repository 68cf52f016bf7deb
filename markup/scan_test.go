package markup_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/markup"
)

// scan returns the tokens of a line, one string each: text is quoted; colours begin with "sgr" and
// elements with "elem tag"; a malformed element is followed by its error and the error's offset.
func scan(line string) []string {
	var got []string
	var s markup.Scanner
	s.Reset([]byte(line))
	for tok, ok := s.Next(); ok; tok, ok = s.Next() {
		if line[tok.Off:tok.Off+len(tok.Raw)] != string(tok.Raw) {
			got = append(got, fmt.Sprintf("WRONG OFFSET %d", tok.Off))
		}
		desc := fmt.Sprintf("%q", tok.Raw)
		switch tok.Kind {
		case markup.SGR:
			desc = "sgr " + desc
		case markup.Elem:
			desc = fmt.Sprintf("elem %s %s %q", tok.Tag, desc, tok.Fields)
			if tok.Tag == markup.TagUnknown {
				desc = fmt.Sprintf("unknown %q %q", tok.Raw, tok.Fields)
			}
			if tok.Fields == nil {
				desc = strings.TrimSuffix(desc, ` ""`) + " no fields"
			}
		default:
			if tok.Tag != markup.NoTag {
				desc += " opens " + tok.Tag.String()
			}
		}
		if tok.Err != nil {
			desc += fmt.Sprintf(" %d: %v", tok.Err.Off, tok.Err)
		}
		got = append(got, desc)
	}
	return got
}

func TestScan(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       []string
	}{
		{"nothing", "", nil},
		{"text with its line end", "no markup\r\n", []string{`"no markup\r\n"`}},
		{"any bytes", "\x00\xff{}}}\n", []string{`"\x00\xff{}}}\n"`}},
		{"an element alone", "{{{bt:0:0x1:ra}}}\n", []string{`elem bt "{{{bt:0:0x1:ra}}}" "0:0x1:ra"`, `"\n"`}},
		{"text around it", "a {{{pc:0x1}}} b", []string{`"a "`, `elem pc "{{{pc:0x1}}}" "0x1"`, `" b"`}},
		{"several", "{{{pc:0x1}}}{{{data:0x2}}} {{{reset}}}", []string{
			`elem pc "{{{pc:0x1}}}" "0x1"`, `elem data "{{{data:0x2}}}" "0x2"`, `" "`, `elem reset "{{{reset}}}" no fields`}},
		{"every tag", "{{{reset:begin}}}{{{module:0:a:elf:aa}}}{{{mmap:0x1:1:load:0:r:0}}}{{{symbol:f}}}{{{hexdict:A:0}}}{{{dumpfile:a:b}}}", []string{
			`elem reset "{{{reset:begin}}}" "begin"`,
			`elem module "{{{module:0:a:elf:aa}}}" "0:a:elf:aa"`,
			`elem mmap "{{{mmap:0x1:1:load:0:r:0}}}" "0x1:1:load:0:r:0"`,
			`elem symbol "{{{symbol:f}}}" "f"`,
			`elem hexdict "{{{hexdict:A:0}}}" "A:0"`,
			`elem dumpfile "{{{dumpfile:a:b}}}" "a:b"`}},
		{"an unknown tag", "{{{foo}}} {{{bar:}}} {{{baz:1:2}}}", []string{
			`unknown "{{{foo}}}" no fields`, `" "`, `unknown "{{{bar:}}}" ""`, `" "`, `unknown "{{{baz:1:2}}}" "1:2"`}},
		{"the element ends at the first braces", "{{{symbol:a}}}}}}", []string{`elem symbol "{{{symbol:a}}}" "a"`, `"}}}"`}},

		// Colour.
		{"colours", "\x1b[1;31mred\x1b[m", []string{`sgr "\x1b[1;31m"`, `"red"`, `sgr "\x1b[m"`}},
		{"sub-parameters", "\x1b[38:2::1:2:3m", []string{`sgr "\x1b[38:2::1:2:3m"`}},
		{"colour next to elements", "\x1b[1m{{{pc:0x1}}}\x1b[0m", []string{`sgr "\x1b[1m"`, `elem pc "{{{pc:0x1}}}" "0x1"`, `sgr "\x1b[0m"`}},
		{"other control sequences are text", "\x1b[2K\x1b\x1b[?25l\x1b]8;;\x1b\\", []string{`"\x1b[2K\x1b\x1b[?25l\x1b]8;;\x1b\\"`}},
		{"unfinished sequences are text", "\x1b[1\x1b[", []string{`"\x1b[1\x1b["`}},
		{"one may follow an unfinished one", "\x1b[1\x1b[2m", []string{`"\x1b[1"`, `sgr "\x1b[2m"`}},
		{"the longest parameters", "\x1b[" + strings.Repeat("1", 64) + "m", []string{`sgr "\x1b[` + strings.Repeat("1", 64) + `m"`}},
		{"longer ones are text", "\x1b[" + strings.Repeat("1", 65) + "m", []string{`"\x1b[` + strings.Repeat("1", 65) + `m"`}},
		{"no colour inside of a field", "{{{symbol:\x1b[1m}}}", []string{`elem symbol "{{{symbol:\x1b[1m}}}" "\x1b[1m"`}},

		// Stray braces.
		{"four braces", "{{{{pc:0x1}}}}", []string{`"{"`, `elem pc "{{{pc:0x1}}}" "0x1"`, `"}"`}},
		{"a run of braces", "{{{{{{{ {{{pc:0x1}}}", []string{`"{{{{{{{ "`, `elem pc "{{{pc:0x1}}}" "0x1"`}},
		{"no tag", "{{{}}} {{{:x}}} {{{ pc:0x1}}}", []string{`"{{{}}} {{{:x}}} {{{ pc:0x1}}}"`}},
		{"a tag of other bytes", "{{{tAg}}} {{{x1:2}}} {{{my tag}}} {{{a_b:c}}} {{{ä:c}}}", []string{`"{{{tAg}}} {{{x1:2}}} {{{my tag}}} {{{a_b:c}}} {{{ä:c}}}"`}},
		{"a tag without anything behind", "{{{pc", []string{`"{{{pc"`}},
		{"a tag with a single brace behind", "{{{pc}} {{{pc}", []string{`"{{{pc}} {{{pc}"`}},
		{"an unknown tag without its end", "{{{foo:bar", []string{`"{{{foo:bar"`}},
		{"an unknown tag with a brace", "{{{foo:a}b}}}", []string{`"{{{foo:a}b}}}"`}},
		{"an element in an unknown one", "{{{foo:{{{pc:0x1}}}", []string{`"{{{foo:"`, `elem pc "{{{pc:0x1}}}" "0x1"`}},
		{"an element behind a stray brace", "D {{{ {{{pc:0x1}}} E", []string{`"D {{{ "`, `elem pc "{{{pc:0x1}}}" "0x1"`, `" E"`}},

		// Malformed elements.
		{"no end", "a {{{bt:0:0x1", []string{`"a "`, `"{{{" opens bt 13: bt: expected a closing }}} on the line, found nothing`, `"bt:0:0x1"`}},
		{"half an end", "{{{pc:0x1}}", []string{`"{{{" opens pc 9: pc: expected a closing }}}, found "}}"`, `"pc:0x1}}"`}},
		{"an element in an unfinished one", "{{{bt:0:0x1 {{{pc:0x1}}}", []string{
			`"{{{" opens bt 12: bt: expected a closing }}}, found "{{{pc:0x1}}}"`, `"bt:0:0x1 "`, `elem pc "{{{pc:0x1}}}" "0x1"`}},
		{"a brace in a field", "{{{symbol:a}b}}} {{{pc:0x1}}}", []string{
			`"{{{" opens symbol 11: symbol: expected a closing }}}, found "}b}"`, `"symbol:a}b}}} "`, `elem pc "{{{pc:0x1}}}" "0x1"`}},
		{"a bad field", "x {{{bt:0:12}}} {{{bt:x:0x1}}}", []string{
			`"x "`, `"{{{" opens bt 10: bt: expected an address, found "12"`, `"bt:0:12}}} "`,
			`"{{{" opens bt 22: bt: expected a frame number, found "x"`, `"bt:x:0x1}}}"`}},
		{"no fields", "{{{bt}}}", []string{`"{{{" opens bt 5: bt: expected a frame number, found nothing`, `"bt}}}"`}},
		{"too long", "{{{symbol:" + strings.Repeat("a", 16<<10-12) + "}}}", []string{
			`"{{{" opens symbol 0: symbol: expected at most 16 KiB, found "{{{symbol:` + strings.Repeat("a", 54) + `…"`,
			`"symbol:` + strings.Repeat("a", 16<<10-12) + `}}}"`}},
		{"the longest", "{{{symbol:" + strings.Repeat("a", 16<<10-13) + "}}}", []string{
			`elem symbol "{{{symbol:` + strings.Repeat("a", 16<<10-13) + `}}}" "` + strings.Repeat("a", 16<<10-13) + `"`}},

		// Symbols may hold braces.
		{"literal braces", "{{{symbol:{{{}}}", []string{`elem symbol "{{{symbol:{{{}}}" "{{{"`}},
		{"many literal braces", "{{{symbol:{{{{{{{}}}pc:0x1}}}", []string{`elem symbol "{{{symbol:{{{{{{{}}}" "{{{{{{{"`, `"pc:0x1}}}"`}},
		{"braces in a name", "{{{symbol:a{{{ {{{1 b}}}", []string{`elem symbol "{{{symbol:a{{{ {{{1 b}}}" "a{{{ {{{1 b"`}},
		{"an element in a symbol", "{{{symbol:a {{{pc:0x1}}}", []string{
			`"{{{" opens symbol 12: symbol: expected a closing }}}, found "{{{pc:0x1}}}"`, `"symbol:a "`, `elem pc "{{{pc:0x1}}}" "0x1"`}},
		{"an element without fields in a symbol", "{{{symbol:a {{{ {{{reset}}}", []string{
			`"{{{" opens symbol 12: symbol: expected a closing }}}, found "{{{ {{{reset}}}"`, `"symbol:a {{{ "`, `elem reset "{{{reset}}}" no fields`}},

		// Several lines.
		{"a hexdict opens", "a {{{hexdict:\n", []string{`"a "`, `"{{{" opens hexdict`, `"hexdict:\n"`}},
		{"a hexdict opens with pairs", "{{{hexdict: RIP: 0x1 \x1b[1m", []string{`"{{{" opens hexdict`, `"hexdict: RIP: 0x1 "`, `sgr "\x1b[1m"`}},
		{"a hexdict over lines that were joined", "{{{hexdict:\nA: 0\n}}} b", []string{`elem hexdict "{{{hexdict:\nA: 0\n}}}" "\nA: 0\n"`, `" b"`}},
		{"a hexdict with a brace does not go on", "{{{hexdict: a } b", []string{`"{{{" opens hexdict 14: hexdict: expected a closing }}}, found "} b"`, `"hexdict: a } b"`}},
		{"a hexdict without fields", "{{{hexdict}}}", []string{`"{{{" opens hexdict 10: hexdict: expected keys and values, found nothing`, `"hexdict}}}"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, scan(tt.line)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.line, diff)
			}
		})
	}
}

// TestScanIsLinear scans lines that would take minutes if the Scanner searched ahead from each
// brace.
func TestScanIsLinear(t *testing.T) {
	const (
		size  = 2 << 20
		limit = 5 * time.Second // a tenth of a second is usual
	)
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, line := range map[string]string{
		"openings":                          fill("{{{bt:"),
		"openings and one end":              fill("{{{bt:") + "}}}",
		"symbols and one end":               fill("{{{symbol:") + "}}}",
		"symbols with braces and one end":   fill("{{{symbol:{{{{{{{{{{") + "}}}",
		"braces":                            fill("{"),
		"braces and one end":                fill("{") + "}}}",
		"braces in a symbol":                fill("{{{symbol:" + strings.Repeat("{", 15000)),
		"braces in closed symbols":          fill("{{{symbol:" + strings.Repeat("{", 15000) + "}}}"),
		"single ends":                       fill("{{{bt:}"),
		"unknown":                           fill("{{{x:"),
		"unknown and one end":               fill("{{{x:") + "}}}",
		"letters":                           "{{{" + fill("a"),
		"letters behind braces":             "{{{symbol:" + fill("{{{aaaaaaaaaaaaaaaa"),
		"escapes":                           fill("\x1b"),
		"sequences without end":             fill("\x1b[1"),
		"one long sequence":                 "\x1b[" + fill("1;") + "m",
		"elements":                          fill("{{{pc:0x1}}}"),
		"modules without a build ID":        fill("{{{module:0:" + strings.Repeat(":elf:", 3000) + "}}}"),
		"modules with a bad build ID":       fill("{{{module:0:" + strings.Repeat(":elf:"+strings.Repeat("a", 120), 120) + "x}}}"),
		"hexdicts":                          fill("{{{hexdict:"),
		"text":                              fill("a log line "),
		"two braces, and ends in between":   fill("{{x}}"),
		"an element and a line that is new": fill("{{{pc:0x1}}}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			within(t, limit, func() {
				var s markup.Scanner
				s.Reset([]byte(line))
				n := 0
				for tok, ok := s.Next(); ok; tok, ok = s.Next() {
					n += len(tok.Raw)
				}
				if n != len(line) {
					t.Errorf("got %d bytes, want %d", n, len(line))
				}
			})
			within(t, limit, func() { access.MayBecomeElement([]byte(line)) })
		})
	}
}

func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > limit {
		t.Errorf("took %v, want at most %v", took, limit)
	}
}

func TestMayBecomeElement(t *testing.T) {
	for _, tt := range []struct {
		tail string
		want bool
	}{
		{"", false},
		{"text", false},
		{"a {", true},
		{"a {{", true},
		{"a {{{", true},
		{"a {{{{", true},
		{"a {b", false},
		{"{{{b", true},
		{"{{{bt", true},
		{"{{{B", false},
		{"{{{bt1", false},
		{"{{{ ", false},
		{"{{{bt:", true},
		{"{{{bt:0:0x1}", true},
		{"{{{bt:0:0x1}}", true},
		{"{{{bt:0:0x1}}}", false},
		{"{{{bt:0:0x1} ", false},
		{"{{{reset}", true},
		{"{{{reset}}", true},
		{"{{{reset}}}", false},
		{"{{{reset} ", false},
		{"{{{foo:bar", true},
		{"{{{bt:0 {{{ x", false},
		{"{{{bt:0 {{{pc:0x1", true},
		{"{{{pc:0x1}}} {{{bt:0", true},
		{"{{{symbol:{{{ x", true},
		{"{{{symbol:{{{}}}", false},
		{"{{{symbol:{{{reset}", true},
		{"{{{hexdict: A: 0x1 ", true},
		{"{{{symbol:" + strings.Repeat("a", 20000), false},
		{"a \x1b", true},
		{"a \x1b[", true},
		{"a \x1b[1;3", true},
		{"a \x1b[1;3m", false},
		{"a \x1b[1;3K", false},
		{"a \x1b]", false},
		{"\x1b[" + strings.Repeat("1", 64), true},
		{"\x1b[" + strings.Repeat("1", 65), false},
		{"{{{symbol:\x1b[1m}}}", false},
	} {
		if got := access.MayBecomeElement([]byte(tt.tail)); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.tail, got, tt.want)
		}
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	lines := [][]byte{
		[]byte("[00001.1] {{{bt:3:0x7f0012345678:ra}}}\n"),
		[]byte("\x1b[1;31mERROR\x1b[0m {{{pc:0x1}}} {{{symbol:{{{}}}"),
		[]byte("{{{module:1:libc.so.6:elf:83238ab56ba10497}}}"),
		[]byte("{{{mmap:0x7acba69d5000:0x5a000:load:1:rx:0x1000}}} {{{foo:bar}}} {{{reset:begin}}} {{{dumpfile:a:b}}}"),
		[]byte("{{{hexdict:"),
	}
	var s markup.Scanner
	for _, line := range lines {
		if n := testing.AllocsPerRun(100, func() {
			s.Reset(line)
			for _, ok := s.Next(); ok; _, ok = s.Next() {
			}
		}); n != 0 {
			t.Errorf("%q: got %v allocations, want 0", line, n)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, bm := range []struct{ name, line string }{
		{"bt", "{{{bt:3:0x7f0012345678:ra}}}"},
		{"bt-prefixed", "[00135.795][1727][2405][klog] INFO: {{{bt:3:0x7f0012345678:ra}}}\n"},
		{"mmap", "{{{mmap:0x7acba69d5000:0x5a000:load:1:rx:0x1000}}}\n"},
		{"colours", "\x1b[1;31mERROR\x1b[0m: heap-use-after-free on address 0x602000000010\n"},
		{"text", "2026-01-01T00:00:00Z INFO request served in 12 ms, {\"status\":200}\n"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			line := []byte(bm.line)
			b.SetBytes(int64(len(line)))
			var s markup.Scanner
			for b.Loop() {
				s.Reset(line)
				for tok, ok := s.Next(); ok; tok, ok = s.Next() {
					if tok.Tag == markup.TagBT {
						markup.ParseAs[markup.BT](tok.Fields)
					}
				}
			}
		})
	}
}
