package filter

import (
	"unicode"
	"unicode/utf8"
)

// clean returns s as it may be printed: names from markup, ELF and DWARF are
// whatever their author wrote, so control characters (C0, DEL, C1), bidi
// controls, line and paragraph separators and broken UTF-8 come out visible,
// as \x1b or \u202e. An ordinary name is returned as it is.
func clean(s string) string {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if (b|(b-' '*ones)|(b+ones))&high != 0 { // one of them is not ordinary, or comes behind such
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return string(appendClean(make([]byte, 0, len(s)+16), s))
		}
	}
	return s
}

// appendClean appends clean(s) to dst.
func appendClean(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f {
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c < utf8.RuneSelf || r == utf8.RuneError && n == 1:
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		case hidden(r):
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// hidden reports whether a non-ASCII rune changes how its neighbours are
// shown: C1 controls, line separators, bidi controls.
func hidden(r rune) bool {
	switch {
	case r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x061c:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069:
		return true
	}
	return r <= 0xffff && unicode.Is(unicode.Cc, r)
}
