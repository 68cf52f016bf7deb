package callgrind

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// appendClean appends text of a profile or a debug file, with what is not
// printable escaped.
func appendClean(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f {
			i++
			continue
		}
		n := 1
		r := rune(c)
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
			if !(r == utf8.RuneError && n == 1) && unicode.IsPrint(r) {
				i += n
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		if c < utf8.RuneSelf || n == 1 {
			dst = append(dst, '\\', 'x', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, `\u`...)
			dst = append(dst, strconv.FormatUint(1<<16|uint64(r), 16)[1:]...)
		}
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}
