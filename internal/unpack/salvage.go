package unpack

import (
	"bufio"
	"unicode/utf8"
)

// TextRun is the length in bytes of a run of text that ends damage. Random bytes have no such run.
const TextRun = 64

// A salvage reads the input after damage. It drops bytes until the next TextRun bytes are text, and
// passes on the rest. Near the end of the input, fewer bytes of text suffice if they end with a
// line end.
type salvage struct {
	b    *bufio.Reader
	text bool  // the text has begun
	lost int64 // bytes before the text
}

func (s *salvage) Read(p []byte) (int, error) {
	for !s.text {
		run, err := s.b.Peek(TextRun)
		n := TextLen(run)
		switch {
		case len(run) == 0:
			return 0, err
		case n < len(run):
			n++
		case err == nil || run[n-1] == '\n':
			s.text = true
			continue
		}
		s.b.Discard(n)
		s.lost += int64(n)
	}
	return s.b.Read(p)
}

// TextLen returns how many bytes at the beginning of b are text: UTF-8 without ASCII control
// characters other than line ends, tabs and ESC. b may end within a character.
func TextLen(b []byte) int {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				if i > 0 && !utf8.FullRune(b[i:]) {
					return len(b)
				}
				return i
			}
			i += size
		case c >= ' ' && c != 0x7f, c == '\n', c == '\r', c == '\t', c == 0x1b:
			i++
		default:
			return i
		}
	}
	return len(b)
}
