package layout

import "testing"

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "a\tb": 9, "\x1b[0;1mab\x1b[0m": 2, "é": 1, "e\u0301": 1, "短い": 4,
		"\x1b]8;;https://example.org/\x1b\\a.c:1\x1b]8;;\x1b\\": 5, "\x1b[": 1, "\x1b]8;;": 4,
	} {
		if got, _ := columns([]byte(text), 0); got != want {
			t.Errorf("%q: got %d columns, want %d", text, got, want)
		}
	}
}
