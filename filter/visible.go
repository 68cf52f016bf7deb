package filter

import (
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/markup"
)

// visible escapes control characters of the log's text, such as \x1b or \u202e, which a terminal
// would obey. It does not escape TAB. Colour sequences are tokens of their own and do not come
// here.
type visible struct {
	cut []byte // the first bytes of a rune whose last bytes are in the next part of the line
}

// append appends text to dst. Unless text is whole, append keeps an incomplete rune at its end for
// the next call.
func (v *visible) append(dst, text []byte, whole bool) []byte {
	if len(v.cut) > 0 {
		text = append(v.cut, text...)
		v.cut = nil
	}
	if n := escape.CutRune(text); n > 0 && !whole {
		v.cut = append([]byte(nil), text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	return escape.AppendText(dst, text, "\t")
}

// unfinishedText returns the length of the unfinished colour sequence or character at the end of b.
func unfinishedText(b []byte) int {
	if n := markup.UnfinishedSGR(b); 0 < n && n < maxLongCut {
		return n
	}
	return escape.CutRune(b)
}
