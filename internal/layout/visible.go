package layout

import "github.com/symfilter/symfilter/internal/escape"

// visible escapes control characters that a terminal would obey, such as \x1b or \u202e, but not
// TAB. The text has no colour sequences, which are separate tokens.
type visible struct {
	Cut []byte // first bytes of a rune that continues in the next part of the line
}

// Append appends text to dst. Unless whole is set, it keeps an incomplete rune at the end of text
// for the next call.
func (v *visible) Append(dst, text []byte, whole bool) []byte {
	if len(v.Cut) > 0 {
		text = append(v.Cut, text...)
		v.Cut = nil
	}
	if n := escape.CutRune(text); n > 0 && !whole {
		v.Cut = append([]byte(nil), text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	return escape.AppendText(dst, text, "\t")
}
