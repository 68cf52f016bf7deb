// Package escape writes text of unknown origin in a harmless form: names and messages from reports
// and ELF files. For people it makes characters visible that a terminal would interpret. For
// programs it writes a JSON string.
package escape

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const digits = "0123456789abcdef"

// AppendText appends text with escapes such as \x1b and \u202e. It escapes control characters,
// bytes that are not UTF-8, and characters that separate lines or change the direction of text. It
// also escapes characters without a width, except accents: Unicode's format characters, variation
// selectors and fillers. It does not change the ASCII characters in keep.
func AppendText[S []byte | string](dst []byte, text S, keep string) []byte {
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c < utf8.RuneSelf && strings.IndexByte(keep, c) >= 0 {
			i++
			continue
		}
		r, n := decode(text, i)
		if n > 1 && !obeyed(r) {
			i += n
			continue
		}
		dst = append(dst, text[from:i]...)
		switch {
		case n == 1:
			dst = append(dst, '\\', 'x', digits[c>>4], digits[c&15])
		case r <= 0xffff:
			dst = append4(append(dst, '\\', 'u'), r)
		default:
			dst = append4(append4(append(dst, '\\', 'U'), r>>16), r)
		}
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

// obeyed reports whether a terminal or an editor may interpret r instead of showing it, or show
// nothing for it. r must be beyond ASCII.
func obeyed(r rune) bool {
	switch {
	case r < 0x600: // most of the world's alphabets
		return r < 0xa0 || r == '\u00ad' || r == '\u034f'
	case r > 0x206f && r < 0xfe00: // the scripts of East Asia
		return r == '\u3164' // a blank letter
	case r > 0x1d1ff && r < 0xe0000: // emoji
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// AppendString appends text as a JSON string. It escapes all characters that AppendText escapes, so
// the string is harmless on a terminal. Escaped characters beyond U+FFFF become surrogate pairs.
// Bytes that are not UTF-8 become U+FFFD, and lossy is set.
func AppendString[S []byte | string](dst []byte, text S) (_ []byte, lossy bool) {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		if len(text)-i >= 8 && isPlain(word(text[i:])) {
			i += 8
			continue
		}
		c := text[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := decode(text, i)
		if n > 1 && !obeyed(r) {
			i += n
			continue
		}
		dst = append(dst, text[from:i]...)
		switch {
		case r == utf8.RuneError:
			dst = append(dst, "\ufffd"...)
			lossy = true
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = appendEscape(dst, r)
		}
		i += n
		from = i
	}
	return append(append(dst, text[from:]...), '"'), lossy
}

// AppendJSON appends text, a JSON value in UTF-8. It escapes DEL, and the characters beyond ASCII
// that AppendString escapes. These can only be within strings, so the value stays the same.
func AppendJSON[S []byte | string](dst []byte, text S) []byte {
	from := 0
	for i := 0; i < len(text); {
		r, n := decode(text, i)
		if r == 0x7f || r >= utf8.RuneSelf && obeyed(r) {
			dst = appendEscape(append(dst, text[from:i]...), r)
			from = i + n
		}
		i += n
	}
	return append(dst, text[from:]...)
}

func appendEscape(dst []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		dst = append4(append(dst, '\\', 'u'), high)
		r = low
	}
	return append4(append(dst, '\\', 'u'), r)
}

func word[S []byte | string](text S) uint64 {
	_ = text[7]
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// isPlain reports whether a JSON string may contain the 8 bytes of w unescaped: each is printable
// ASCII, and neither a quotation mark nor a backslash.
func isPlain(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080 // a bit of each byte: the lowest, the highest
	quote, backslash := w^each*'"', w^each*'\\'
	return (w|(w+each)|(w-each*' ')|(quote-each)|(backslash-each))&high == 0
}

// decode returns the character of text at i and its length in bytes. A byte that is not UTF-8 has
// length 1.
func decode[S []byte | string](text S, i int) (r rune, n int) {
	if c := text[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(string(text[i:min(len(text), i+utf8.UTFMax)]))
}

// append4 appends the last four hex digits of r.
func append4(dst []byte, r rune) []byte {
	return append(dst, digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// CutRune returns the length of the incomplete rune at the end of b, or 0.
func CutRune(b []byte) int {
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
