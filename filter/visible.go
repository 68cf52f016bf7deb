package filter

import (
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

// visible makes control characters of the log's text visible, for a terminal
// that would obey them: as \x1b or \u202e. TAB stays. Colour sequences are not
// its business: they come as tokens of their own.
type visible struct {
	cut []byte // the beginning of a rune that the next piece of the line ends
}

// append appends text to dst. whole says that the line ends here, or something
// that is no text follows; else a rune that the end of text cuts is kept for
// the next call.
func (v *visible) append(dst, text []byte, whole bool) []byte {
	if len(v.cut) > 0 {
		text = append(v.cut, text...)
		v.cut = nil
	}
	if n := cutRune(text); n > 0 && !whole {
		v.cut = append([]byte(nil), text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	return escape.AppendText(dst, text, "\t")
}

// cutRune returns the length of the unfinished rune that b ends with.
func cutRune(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
