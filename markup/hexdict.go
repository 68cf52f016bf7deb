package markup

import "iter"

// HexDict is a dump of keys and values, such as registers, over one or several lines.
type HexDict struct {
	Body string // as logged, with line ends and log prefixes
}

// A Pair is a key of a HexDict with its value.
type Pair struct {
	Key      string
	Value    uint64
	Off, End int // byte range of the value in Body, with its 0x
}

// Pairs returns the pairs of a HexDict in the order of the text. A pair is a key, a colon, optional
// blanks and a value: 0x and digits, or only zeros. Other text, such as log prefixes, is skipped.
func (h HexDict) Pairs() iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		key := "" // the key before a colon, until its value is found
		body := h.Body
		for i := 0; i < len(body); {
			if blank(body[i]) {
				i++
				continue
			}
			end := i
			for end < len(body) && !blank(body[end]) && body[end] != ':' {
				end++
			}
			word := body[i:end]
			if end < len(body) && body[end] == ':' {
				key = word
				i = end + 1
				continue
			}
			if v, ok := hexValue(word); ok && key != "" && !yield(Pair{key, v, i, end}) {
				return
			}
			key = ""
			i = end
		}
	}
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// hexValue parses a word that is an address: 0x and hexadecimal digits, or only zeros.
func hexValue(word string) (uint64, bool) {
	v, _, ok := address([]byte(word), 0)
	return v, ok
}
