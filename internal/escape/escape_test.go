package escape

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestTextIsMadeVisible(t *testing.T) {
	for _, tt := range []struct{ text, keep, want string }{
		{"", "", ""},
		{"a name<int>(char)", "", "a name<int>(char)"},
		{"a\tb\rc\nd", "", `a\x09b\x0dc\x0ad`},
		{"a\tb\nc", "\t", "a\tb\\x0ac"},
		{"a\tb\nc", "\t\n", "a\tb\nc"},
		{"\x1b[31m\x00\x7f", "\t\n", `\x1b[31m\x00\x7f`},
		{"grün 木 😀", "", "grün 木 😀"},
		{"\u009b\u202e\u2028\ufeff\u2065", "", `\u009b\u202e\u2028\ufeff\u2065`},
		{"\U000e0001", "", `\U000e0001`},
		{"\x9bz\xe6\x9c", "", `\x9bz\xe6\x9c`},
		{"\ufffd", "", "\ufffd"},
		{"a\ufe00b\u034fc\u3164d\uffa0", "", `a\ufe00b\u034fc\u3164d\uffa0`},
		{"\u115f\u1160\u17b4\u180b\u180f", "", `\u115f\u1160\u17b4\u180b\u180f`},
		{"\U000e0100\U000e01ef\U000e0fff", "", `\U000e0100\U000e01ef\U000e0fff`},
		{"e\u0301 \ufe0e ❤\ufe0f", "", "e\u0301 \\ufe0e ❤\\ufe0f"},
	} {
		if got := string(AppendText([]byte("> "), tt.text, tt.keep)); got != "> "+tt.want {
			t.Errorf("%q, keeping %q: got %q, want %q", tt.text, tt.keep, got, "> "+tt.want)
		}
	}
}

func TestStringsOfJSONAreHarmlessOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		lossy      bool
	}{
		{"a\u202eb\u2066c\u00adд\ufeff", `"a\u202eb\u2066c\u00adд\ufeff"`, false},
		{"\U000e0041\U000e007f😀", `"\udb40\udc41\udb40\udc7f😀"`, false},
		{"\u2065\u0085\x7f", `"\u2065\u0085\u007f"`, false},
		{"<a href='&'>", `"<a href='&'>"`, false},
		{"a\xffb\ufffd", `"a` + "\ufffdb\ufffd" + `"`, true},
	} {
		if got, lossy := AppendString(nil, tt.text); string(got) != tt.want || lossy != tt.lossy {
			t.Errorf("%q: got %s, %v, want %s", tt.text, got, lossy, tt.want)
		}
	}
}

func TestValuesOfJSONAreHarmlessOnATerminal(t *testing.T) {
	const value = "{\"a\u202e\": [\"\u009b31m\x7fд😀\", {\"\U000e0041\": 1.5}], \"\\\\\u2028\": null}"
	const want = `{"a\u202e": ["\u009b31m\u007fд😀", {"\udb40\udc41": 1.5}], "\\\u2028": null}`
	got := string(AppendJSON(nil, value))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var a, b any
	if json.Unmarshal([]byte(value), &a) != nil || json.Unmarshal([]byte(got), &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s is not the value %s", got, value)
	}
}

// isPlain must reject eight bytes if one of them, at any place, is a control character, a quotation
// mark, a backslash or not ASCII. It must accept all others.
func TestWordsOfStringsArePlain(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c < 0x7f && c != '"' && c != '\\'
		for i := range 8 {
			text := []byte("~ ~a ~ z")
			text[i] = byte(c)
			if got := isPlain(word(text)); got != want {
				t.Errorf("%q: got %v", text, got)
			}
		}
	}
}

// harmful returns the result that obeyed must have, from Unicode's tables alone.
func harmful(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// obeyed must agree with Unicode's tables for every character, including the ranges that obeyed
// decides without a table.
func TestObeyed(t *testing.T) {
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if got, want := obeyed(r), harmful(r); got != want {
			t.Errorf("%U: got %v, want %v", r, got, want)
		}
	}
}

// The output must not depend on how the text is divided into writes.
func TestWriterEscapesLines(t *testing.T) {
	const text = "a\tb\r\n\x1b]0;title\x07grün😀\u202e\U000e0041\rx\n\xff\xe6\x9c\n\r\n\xe6\x9c"
	const want = "a\tb\r\n\\x1b]0;title\\x07grün😀\\u202e\\U000e0041\\x0dx\n\\xff\\xe6\\x9c\n\r\n\\xe6\\x9c"
	for size := 1; size <= len(text); size++ {
		var got strings.Builder
		w := NewWriter(&got)
		for piece := range slices.Chunk([]byte(text), size) {
			if n, err := w.Write(piece); n != len(piece) || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
		}
		w.Close()
		if got.String() != want {
			t.Errorf("in pieces of %d: got %q, want %q", size, got.String(), want)
		}
	}
}

// For any bytes, the text for people must have nothing that a terminal interprets. The string for
// programs must decode to the same text as encoding/json's.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;x\x07", "\u009b\u202e", "\xff\xed\xa0\x80", "\U000e0001😀", "\u038d\u00a0\ue000", "\u034f\u3164\ufe0f\U000e0100", `"\`, "\x00\x7f\t\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzztest.Growth(t, text, func(text []byte) {
			AppendString(AppendText(nil, text, ""), text)
		})
		shown := string(AppendText(nil, text, ""))
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, harmful) {
			t.Errorf("%q is shown as %q", text, shown)
		}
		var terminal strings.Builder
		w := NewWriter(&terminal)
		w.Write(text[:len(text)/2])
		w.Write(text[len(text)/2:])
		w.Close()
		if left := strings.NewReplacer("\r\n", "", "\n", "", "\t", "").Replace(terminal.String()); !utf8.ValidString(left) || strings.ContainsFunc(left, harmful) {
			t.Errorf("%q is shown on a terminal as %q", text, terminal.String())
		}
		var got, want string
		quoted, lossy := AppendString(nil, text)
		if strings.ContainsFunc(string(quoted), harmful) || lossy == utf8.Valid(text) {
			t.Errorf("%q becomes %q, %v", text, quoted, lossy)
		}
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%v in %s", err, quoted)
		}
		reference, err := json.Marshal(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(reference, &want); err != nil || got != want {
			t.Errorf("got %q, want %q, %v", got, want, err)
		}
	})
}
