package main

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// obeyed matches text with no control characters other than colours, TAB and line ends.
var obeyed = regexp.MustCompile(`^(?:[^\x00-\x1f\x7f\x{80}-\x{9f}\x{2028}\x{2029}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2069}\x{feff}\x{61c}]|\t|\r?\n|\x1b\[[0-9;:]{0,64}m)*$`)

// Control characters in 10,000 lines (100,000 with TEST_LONG), in text and in names, must not reach
// a terminal, except for colours, TAB and line ends.
func TestHostileLinesOnATerminal(t *testing.T) {
	lines := 10_000
	if os.Getenv("TEST_LONG") != "" {
		lines *= 10
	}
	pieces := []string{
		"\x1b]0;title\a", "\x1b]52;c;aGk=\x1b\\", "\x1b[5n", "\x1b[2J", "\x1bP$q\"p\x1b\\", "\x9b5n", "\u009b5n", "\u202e", "\u2066", "\a", "\b\b", "\r", "\x0e", "\x7f",
		"\x1b[1;31m", "\x1b[0m", "\x1b[", "\x1b", "\xe2\x80", "\xff", "\u2028", "\x00", "\t", "é", "\x1b[?1049h", "word ", "{{{", "}}}",
		"{{{symbol:\x1b]0;x\a}}}", "{{{module:1:\x1b[2J\u202e:elf:aa}}}", "{{{mmap:0x1000:0x1000:load:1:r:0x0}}}", "{{{bt:0:0x1010}}}", "{{{hexdict: \x1b[5n:0x1010}}}", "{{{other:\x9b}}}",
	}
	r := rand.New(rand.NewPCG(1, 2))
	var log strings.Builder
	for range lines {
		for range r.IntN(8) {
			log.WriteString(pieces[r.IntN(len(pieces))])
		}
		log.WriteString("\n")
	}
	for _, args := range [][]string{nil, {"--color=never"}} {
		shown := onTerminal(t, log.String(), nil, append([]string{"-q"}, args...)...)
		if n := strings.Count(shown, "\n"); n < lines*9/10 {
			t.Errorf("%q: %d lines are shown of %d", args, n, lines)
		}
		for line := range strings.Lines(shown) {
			if !utf8.ValidString(line) || !obeyed.MatchString(line) {
				t.Fatalf("%q: this reaches the terminal: %q", args, line)
			}
		}
	}
}
