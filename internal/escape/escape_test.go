package escape

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextIsMadeVisible(t *testing.T) {
	for _, tt := range []struct{ text, keep, want string }{
		{"", "", ""},
		{"a name<int>(char)", "", "a name<int>(char)"},
		{"a\tb\nc", "", `a\x09b\x0ac`},
		{"a\tb\nc", "\t", "a\tb\\x0ac"},
		{"a\tb\nc", "\t\n", "a\tb\nc"},
		{"\x1b[31m\x00\x7f", "\t\n", `\x1b[31m\x00\x7f`},
		{"grün 木 😀", "", "grün 木 😀"},
		{"\u009b\u202e\u2028\ufeff\u2065", "", `\u009b\u202e\u2028\ufeff\u2065`},
		{"\U000e0001", "", `\U000e0001`},
		{"\x9bz\xe6\x9c", "", `\x9bz\xe6\x9c`},
		{"\ufffd", "", "\ufffd"},
	} {
		if got := string(AppendText([]byte("> "), tt.text, tt.keep)); got != "> "+tt.want {
			t.Errorf("%q, keeping %q: got %q, want %q", tt.text, tt.keep, got, "> "+tt.want)
		}
	}
}

func TestObjectsAreOfJSON(t *testing.T) {
	got := append(AppendHex(AppendMember(AppendMember([]byte("{"), "a", "b\"\\\n\t\x1b\u2028"), "c", []byte("\xffü")), "d", 1<<60), '}')
	if want := `{"a":"b\"\\\n\t\u001b\u2028","c":"` + "\ufffdü" + `","d":"0x1000000000000000"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever the bytes are, the text for people has nothing that a terminal
// obeys, and the string for programs says the same as encoding/json's.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;x\x07", "\u009b\u202e", "\xff\xed\xa0\x80", "\U000e0001😀", "\u038d\u00a0\ue000", `"\`, "\x00\x7f\t\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		shown := string(AppendText(nil, text, ""))
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool {
			return r == '\u2065' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}) {
			t.Errorf("%q is shown as %q", text, shown)
		}
		var got, want string
		quoted := AppendString(nil, text)
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
