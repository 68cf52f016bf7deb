package html

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/symfilter/symfilter/internal/escape"
)

// injections are texts that would be markup, script or a character reference if they were not
// escaped, or that end the element or attribute they are in.
var injections = []string{
	"<script>alert(1)</script>", "</script><script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>",
	"</title><svg onload=alert(1)>", "</style><b>", "<!--", "-->", "<![CDATA[", "]]>", "<?php", "</details></summary>",
	`" onclick="alert(1)`, `' onclick='alert(1)`, "`onclick=alert(1)", `"><iframe src=javascript:alert(1)>`,
	"&lt;script&gt;", "&#60;b&#62;", "&amp", "&NewLine;", "&", "javascript:alert(1)", "data:text/html,<b>",
	"\r\n<b>\r", "\x00<\x00b>", "\xff<b>", "\xc0\xbcb>", "\ufeff<b>", "+ADw-script+AD4-", "\u202e<b>", "\u2028<b>",
	"\x1b[31m<b>\x1b]8;;javascript:alert(1)\x1b\\x\x1b[0m", "{{CONSTRUCTOR}}", "${alert(1)}", "\x01\x02\x03\x04 7\x04\x05",
}

// everyByte returns all bytes in order.
func everyByte() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// Escaped text must stay text, in an attribute, in an element and in a chunk. It must look as on a
// terminal.
func TestTextIsNeverMarkup(t *testing.T) {
	for _, text := range append(injections, everyByte(), strings.Repeat("<&'\"> \t", 40)) {
		for pad := range 9 {
			text := strings.Repeat("x", pad) + text
			page := append([]byte(`<p title="`), appendEscaped(nil, []byte(text))...)
			page = append(append(append(page, `">`...), appendEscaped(nil, []byte(text))...), "</p>"...)
			want := string(escape.AppendText(nil, text, "\t"))
			z := html.NewTokenizer(bytes.NewReader(page))
			z.Next()
			token := z.Token()
			if len(token.Attr) != 1 || token.Attr[0].Val != want {
				t.Errorf("the attribute is %q, want %q", token.Attr, want)
			}
			if z.Next(); z.Token().Data != want {
				t.Errorf("the text is %q, want %q", z.Token().Data, want)
			}
			if z.Next(); z.Token().Data != "p" {
				t.Errorf("%q: the text does not end with its element", page)
			}
			if got := string(appendVisible(nil, []byte(text))); got != want {
				t.Errorf("in a chunk: got %q, want %q", got, want)
			}
		}
	}
}
