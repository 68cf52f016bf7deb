package layout

import (
	"strings"
	"testing"
)

func TestSourceLinesAreShownAsPeopleReadThem(t *testing.T) {
	for _, tt := range []struct {
		number uint32
		line   string
		column uint32
		want   string // with the caret on a line of its own
	}{
		{31, "    pool.destroy(o);", 10, "    31 |     pool.destroy(o);\n       |          ^"},
		{31, "    pool.destroy(o);", 0, "    31 |     pool.destroy(o);"},
		{31, "x", 2, "    31 | x"}, // after the end
		{31, "x", 1 << 31, "    31 | x"},
		{1234567, "x", 1, "1234567 | x\n        | ^"},
		{1, "", 1, "     1 |"},
		{1, "  \t ", 0, "     1 |"},
		{1, "\tif\t(x)", 6, "     1 |         if      (x)\n       |                  ^"},
		{1, "a\x1b[31mb\x00\x7f", 6, "     1 | a\\x1b[31mb\\x00\\x7f\n       |         ^"},
		{1, "\xff\u202e\u00fc = 1;", 8, "     1 | \\xff\\u202eü = 1;\n       |             ^"},
		{1, "{{{pc:0x1}}} {{{{", 0, "     1 | {{\\x7bpc:0x1}}} {{\\x7b{"},
		{1, strings.Repeat("x", 160), 160, "     1 | " + strings.Repeat("x", 160) + "\n       | " + strings.Repeat(" ", 159) + "^"},
		{1, strings.Repeat("x", 1<<20), 161, "     1 | " + strings.Repeat("x", 160) + "..."},
		{1, strings.Repeat("x", 159) + "\t", 160, "     1 | " + strings.Repeat("x", 159) + "\n       | " + strings.Repeat(" ", 159) + "^"},
		{1, strings.Repeat("\x00", 100), 40, "     1 | " + strings.Repeat(`\x00`, 40) + "...\n       | " + strings.Repeat(" ", 156) + "^"},
	} {
		got, caret := AppendSourceLine([]byte("> "), tt.number, []byte(tt.line), tt.column)
		if caret >= 0 {
			got = AppendCaret(append(got, '\n'), tt.number, caret)
		}
		if string(got) != "> "+tt.want {
			t.Errorf("%.40q, column %d: got\n%s\nwant\n> %s", tt.line, tt.column, got, tt.want)
		}
	}
}
