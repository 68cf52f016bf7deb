package markup_test

import (
	"bytes"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/markup"
)

// watch fails the test if f takes too much time or memory.
func watch(t *testing.T, f func()) {
	t.Helper()
	defer fuzztest.Watch(t, t.Name())()
	f()
}

var seeds = []string{
	"", "text\r\n", "{{{", "}}}", "{{{reset}}}", "{{{reset:begin}}} x", "{{{{pc:0x1}}}}", "a {{{bt:0:0x12:pc:from CFI}}} b {{{bt:1:0x7f:ra}}}",
	"{{{bt:1:0x12:sp 0x3f}}}", "{{{bt:x:0x1}}}{{{bt:0:12}}}{{{bt}}}", "{{{module:2:<VMO#1=a:b>:elf:ABC:extra}}}", "{{{module:0::elf:elf:aa}}}",
	"{{{mmap:0x1:010:load:0x1:r-xp:0000}}}", "{{{symbol:{{{}}}", "{{{symbol:a {{{ {{{reset}}}", "{{{symbol:a::b:c}}}", "{{{hexdict:\n A: 0x1\n}}}",
	"{{{hexdict: A: 0", "{{{hexdict}}}", "{{{dumpfile:a:b:c}}}", "{{{foo:{{{pc:0x1}}}", "{{{foo}}}{{{foo:bar", "{{{pc:0x1}}", "{{{data:0X00000000000000000001}}}",
	"\x1b[1;31mred\x1b[m\x1b[38:2::1:2:3m\x1b[1K\x1b[", "{{{symbol:\x1b[1m}}}", "{{{bt:18446744073709551616:0x1}}}",
}

// token is a markup.Token in a form that cmp.Diff can compare.
type token struct {
	Kind  markup.TokenKind
	Tag   markup.Tag
	Bad   bool
	Raw   string
	Field string // "-" for none
}

func scanAll(line []byte) {
	var s markup.Scanner
	s.Reset(line)
	for _, ok := s.Next(); ok; _, ok = s.Next() {
	}
}

// FuzzScan compares the Scanner with plainScan, and checks that the tokens' bytes, joined, are the
// line.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		watch(t, func() {
			var s markup.Scanner
			var got []token
			var whole []byte
			s.Reset(line)
			for tok, ok := s.Next(); ok; tok, ok = s.Next() {
				if tok.Off != len(whole) || len(tok.Raw) == 0 {
					t.Fatalf("%q at %d, want at %d", tok.Raw, tok.Off, len(whole))
				}
				whole = append(whole, tok.Raw...)
				if tok.Err != nil && (tok.Err.Off < tok.Off || tok.Err.Off > len(line) || strings.Contains(tok.Err.Error(), "\n")) {
					t.Errorf("bad error %+v", tok.Err)
				}
				fields := "-"
				if tok.Fields != nil {
					fields = string(tok.Fields)
				}
				got = append(got, token{tok.Kind, tok.Tag, tok.Err != nil, string(tok.Raw), fields})
			}
			if !bytes.Equal(whole, line) {
				t.Errorf("got %q, want %q", whole, line)
			}
			fuzztest.Growth(t, line, scanAll)
			if len(line) > 4<<10 {
				return // plainScan would take too long
			}
			if diff := cmp.Diff(plainScan(string(line)), got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", line, diff)
			}
		})
	})
}

var (
	plainSGR     = regexp.MustCompile(`^\x1b\[[0-9:;]{0,64}m`)
	plainElement = regexp.MustCompile(`^\{\{\{([a-z]+)(?::([^}]*))?\}\}\}`)
	plainOpening = regexp.MustCompile(`^\{\{\{(reset|module|mmap|pc|bt|data|symbol|hexdict|dumpfile)(:|\}\}\})`)
	plainInner   = regexp.MustCompile(`\{\{\{[a-z]+(:|\}\}\})`)
	plainHexDict = regexp.MustCompile(`^\{\{\{hexdict:[^}]*$`)

	// plainFields holds, for each known tag, the valid text after the tag and its colon.
	plainFields = map[string]*regexp.Regexp{
		"reset": regexp.MustCompile(`(?s)^.*$`),
		// .* is greedy, so the name ends at the last :elf: that a build ID follows
		"module":   regexp.MustCompile(`^(?:(?P<i>[1-9][0-9]*|0[0-7]*|0[xX][0-9a-fA-F]+)):(?P<name>(?s:.*)):elf:[0-9a-fA-F]{1,128}(?s::.*)?$`),
		"mmap":     regexp.MustCompile(`^(?P<p>0[xX][0-9a-fA-F]+|0+):(?P<i>[1-9][0-9]*|0[0-7]*|0[xX][0-9a-fA-F]+):load:(?P<i>[1-9][0-9]*|0[0-7]*|0[xX][0-9a-fA-F]+):[rwxpsRWXPS-]+:(?P<p>0[xX][0-9a-fA-F]+|0+)(?s::.*)?$`),
		"pc":       regexp.MustCompile(`^(?P<p>0[xX][0-9a-fA-F]+|0+)(?s::.*)?$`),
		"bt":       regexp.MustCompile(`^(?P<u>[0-9]+):(?P<p>0[xX][0-9a-fA-F]+|0+)(?s::.*)?$`),
		"data":     regexp.MustCompile(`^(?P<p>0[xX][0-9a-fA-F]+|0+)(?s::.*)?$`),
		"symbol":   regexp.MustCompile(`(?s)^.*$`),
		"hexdict":  regexp.MustCompile(`(?s)^.*$`),
		"dumpfile": regexp.MustCompile(`(?s)^[^:\n]*:[^:\n]*(:.*)?$`),
	}
)

// plainScan is the reference scanner: it tries regular expressions at each byte.
func plainScan(line string) []token {
	var toks []token
	text := ""
	emit := func(tok token) {
		if text != "" {
			toks = append(toks, token{Raw: text, Field: "-"})
			text = ""
		}
		toks = append(toks, tok)
	}
	for line != "" {
		if m := plainSGR.FindString(line); m != "" {
			emit(token{Kind: markup.SGR, Raw: m, Field: "-"})
			line = line[len(m):]
		} else if m := plainElement.FindStringSubmatchIndex(line); m != nil && plainGood(line[:m[1]], m) {
			tok := token{Kind: markup.Elem, Tag: plainTag(line[m[2]:m[3]]), Raw: line[:m[1]], Field: "-"}
			if m[4] >= 0 {
				tok.Field = line[m[4]:m[5]]
			}
			emit(tok)
			line = line[m[1]:]
		} else if m := plainOpening.FindStringSubmatch(line); m != nil {
			emit(token{Tag: plainTag(m[1]), Bad: !plainHexDict.MatchString(line), Raw: "{{{", Field: "-"})
			line = line[3:]
		} else {
			text += line[:1]
			line = line[1:]
		}
	}
	if text != "" {
		toks = append(toks, token{Raw: text, Field: "-"})
	}
	return toks
}

func plainTag(name string) markup.Tag {
	for tag := markup.TagReset; tag < markup.TagUnknown; tag++ {
		if tag.String() == name {
			return tag
		}
	}
	return markup.TagUnknown
}

// plainGood reports whether an element is well-formed. m holds the submatch offsets of
// plainElement.
func plainGood(elem string, m []int) bool {
	tag := elem[m[2]:m[3]]
	if len(elem) > 16<<10 || strings.Contains(elem[3:], "{{{") && (tag != "symbol" || plainInner.MatchString(elem[3:])) {
		return false
	}
	re := plainFields[tag]
	if re == nil {
		return true
	}
	if m[4] < 0 {
		return tag == "reset"
	}
	fields := elem[m[4]:m[5]]
	if tag == "symbol" {
		// The name ends at the first run of colons other than "::", or at a "::" that ends the
		// fields.
		name := regexp.MustCompile(`(?s)^(?:[^:]|::[^:])*`).FindString(fields)
		return !strings.Contains(name, "\n")
	}
	sub := re.FindStringSubmatch(fields)
	if sub == nil {
		return false
	}
	for i, kind := range re.SubexpNames() {
		base, number := map[string]int{"p": 16, "u": 10, "i": 0}[kind]
		if kind == "name" && strings.Contains(sub[i], "\n") {
			return false
		}
		if !number {
			continue
		}
		digits := sub[i]
		if base == 16 {
			digits = strings.TrimPrefix(strings.ToLower(digits), "0x")
		}
		v, ok := new(big.Int).SetString(digits, base)
		if !ok || v.Cmp(new(big.Int).SetUint64(math.MaxUint64)) > 0 {
			return false
		}
	}
	return true
}

// FuzzElement checks that a parsed element, printed and parsed again, has the same value. It also
// checks that values with names from the input each print as one element.
func FuzzElement(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		watch(t, func() {
			var s markup.Scanner
			s.Reset(line)
			for tok, ok := s.Next(); ok; tok, ok = s.Next() {
				e, err := markup.Parse(tok)
				if (e == nil) != (err != nil) || (e != nil) != (tok.Kind == markup.Elem && tok.Tag != markup.TagUnknown) {
					t.Fatalf("%q: got %v and %v", tok.Raw, e, err)
				}
				if e == nil {
					continue
				}
				printed := e.AppendMarkup(nil)
				var again markup.Scanner
				again.Reset(printed)
				tok2, _ := again.Next()
				e2, err := markup.Parse(tok2)
				if diff := cmp.Diff(e, e2, ids); diff != "" || err != nil || len(tok2.Raw) != len(printed) {
					t.Errorf("%q prints as %q: %v (-want +got):\n%s", tok.Raw, printed, err, diff)
				}
				if twice := e2.AppendMarkup(nil); !bytes.Equal(twice, printed) {
					t.Errorf("%q prints as %q, and then as %q", tok.Raw, printed, twice)
				}
				if h, ok := e.(markup.HexDict); ok {
					last := 0
					for p := range h.Pairs() {
						if p.Off < last || p.End <= p.Off || p.End > len(h.Body) || p.Key == "" {
							t.Errorf("%q: bad pair %+v", h.Body, p)
						}
						last = p.End
					}
				}
			}
			name, rest, _ := strings.Cut(string(line), "\x00")
			for _, e := range []markup.Element{
				markup.Symbol{Name: name}, markup.Module{Name: name}, markup.HexDict{Body: name}, markup.Reset{Extra: name}, markup.DumpFile{Type: name, Name: rest},
			} {
				wantOneElement(t, e)
			}
			fuzztest.Growth(t, line, func(line []byte) {
				var s markup.Scanner
				s.Reset(line)
				for tok, ok := s.Next(); ok; tok, ok = s.Next() {
					markup.Parse(tok)
				}
			})
		})
	})
}

// FuzzMayBecome checks that more bytes do not change the tokens of a line for which
// MayBecomeElement returns false.
func FuzzMayBecome(f *testing.F) {
	for i, s := range seeds {
		f.Add([]byte(s), []byte(seeds[(i+7)%len(seeds)]))
		for cut := range len(s) {
			f.Add([]byte(s[:cut]), []byte(s[cut:]))
		}
	}
	f.Fuzz(func(t *testing.T, tail, more []byte) {
		watch(t, func() {
			fuzztest.Growth(t, tail, func(tail []byte) { access.MayBecomeElement(tail) })
			if access.MayBecomeElement(tail) {
				return
			}
			spans := func(line []byte) (ends []int) {
				var s markup.Scanner
				s.Reset(line)
				for tok, ok := s.Next(); ok; tok, ok = s.Next() {
					if tok.Kind != markup.Text && tok.Off < len(tail) {
						ends = append(ends, tok.Off, tok.Off+len(tok.Raw))
					}
				}
				return ends
			}
			if diff := cmp.Diff(spans(tail), spans(append(tail[:len(tail):len(tail)], more...))); diff != "" {
				t.Errorf("%q is called final, but with %q (-before +after):\n%s", tail, more, diff)
			}
		})
	})
}
