package html

import (
	"encoding/binary"
	"math/bits"

	"github.com/symfilter/symfilter/internal/escape"
)

// Words with the same value in each byte.
const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// appendEscaped appends text of unknown origin for the content of an element, or for an attribute
// in quotation marks. Other code adds text only if plain accepts all of it. Markup and quotation
// marks become character references. Control characters except TAB, bytes that are not UTF-8, and
// characters that change how a browser shows other text become visible, for example as \x1b.
func appendEscaped(dst, text []byte) []byte {
	for i := 0; ; {
		n := plain(text[i:])
		dst = append(dst, text[i:i+n]...)
		if i += n; i == len(text) {
			return dst
		}
		switch c := text[i]; c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		case '\'':
			dst = append(dst, "&#39;"...)
		default:
			n := foreign(text[i:])
			dst = escape.AppendText(dst, text[i:i+n], "\t")
			i += n
			continue
		}
		i++
	}
}

// appendVisible is appendEscaped for the text of a chunk. It leaves markup unchanged.
func appendVisible(dst, text []byte) []byte {
	for i := 0; ; {
		n := printable(text[i:])
		dst = append(dst, text[i:i+n]...)
		if i += n; i == len(text) {
			return dst
		}
		n = foreign(text[i:])
		dst = escape.AppendText(dst, text[i:i+n], "\t")
		i += n
	}
}

// plain returns the number of leading bytes that are printable ASCII and need no escape.
func plain(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		quote := w ^ each*'"'
		ampersand := (w | each) ^ each*'\'' // zero in each byte that is & or '
		angle := (w | each*2) ^ each*'>'    // zero in each byte that is < or >
		if (w|(w+each)|(w-each*' ')|(quote-each)|(ampersand-each)|(angle-each))&high != 0 {
			break
		}
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c < ' ' || c >= 0x7f, c == '"', c == '&', c == '\'', c == '<', c == '>':
			return i
		}
	}
	return i
}

// printable returns the number of leading bytes that are printable ASCII.
func printable(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		if others := (w | (w + each) | (w - each*' ')) & high; others != 0 {
			return i + bits.TrailingZeros64(others)/8 // a carry changes only later bytes
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] < 0x7f {
		i++
	}
	return i
}

// printableLines returns the number of leading bytes that are printable ASCII, TAB or line
// ends. A chunk has them unchanged.
func printableLines(text []byte) int {
	i := 0
	for i+32 <= len(text) {
		a, b := binary.LittleEndian.Uint64(text[i:]), binary.LittleEndian.Uint64(text[i+8:])
		c, d := binary.LittleEndian.Uint64(text[i+16:]), binary.LittleEndian.Uint64(text[i+24:])
		if (a|(a+each)|(a-each*' ')|b|(b+each)|(b-each*' ')|c|(c+each)|(c-each*' ')|d|(d+each)|(d-each*' '))&high == 0 {
			i += 32
			continue
		}
		i += printable(text[i : i+32])
		if !listed(text[i]) {
			return i
		}
		i++
	}
	for i < len(text) && (listed(text[i]) || text[i] >= ' ' && text[i] < 0x7f) {
		i++
	}
	return i
}

// listed reports whether c is a control character that stays unchanged in a chunk.
func listed(c byte) bool { return c == '\n' || c == '\t' }

// foreign returns the number of leading bytes that are not printable ASCII. They are whole
// characters, if text is UTF-8.
func foreign(text []byte) int {
	i := 0
	for i < len(text) && (text[i] < ' ' || text[i] >= 0x7f) {
		i++
	}
	return i
}
