package doctor

import (
	"strings"
	"testing"
)

// Advice that helps several modules must be printed once, with the names of at most three modules.
func TestAdviceIsPrintedOnce(t *testing.T) {
	var a advice
	for _, m := range []struct{ text, module string }{
		{"install it", "/lib/one.so"}, {"fetch it", "two.so"}, {"", "none.so"}, {"install it", "three.so"},
		{"install it", "/opt/four"}, {"install it", "five\x1b[2J"}, {"install it", "six"},
	} {
		a.add(m.text, m.module)
	}
	var out strings.Builder
	a.print(&out)
	want := "       next, for one.so, three.so, four and 2 more: install it\n       next, for two.so: fetch it\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
