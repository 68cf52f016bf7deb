package markup

import (
	"bytes"
	"math/bits"
)

// The number and mode parsers in this file parse the field of f that begins at i. end is the offset
// of the colon after the field, or len(f), even if ok is false. A field that is missing begins at
// len(f), and is empty.

func fieldEnd(f []byte, i int) int { return indexByte(f, i, ':') }

// next returns the beginning of the field after a field's end.
func next(f []byte, end int) int { return min(end+1, len(f)) }

// address parses a %p: 0x and hexadecimal digits, or only zeros.
func address(f []byte, i int) (v uint64, end int, ok bool) {
	j := i
	if i+2 < len(f) && f[i] == '0' && f[i+1]|0x20 == 'x' {
		return hexadecimal(f, i)
	}
	for j < len(f) && f[j] == '0' {
		j++
	}
	return ended(f, i, j, 0, j > i)
}

// integer parses a %i: decimal, hexadecimal with 0x, octal with a leading 0.
func integer(f []byte, i int) (v uint64, end int, ok bool) {
	if i+1 >= len(f) || f[i] != '0' {
		return decimal(f, i)
	}
	if f[i+1]|0x20 == 'x' {
		return hexadecimal(f, i)
	}
	j := i
	for ; j < len(f) && '0' <= f[j] && f[j] <= '7' && v>>61 == 0; j++ {
		v = v<<3 | uint64(f[j]-'0')
	}
	return ended(f, i, j, v, true)
}

// decimal parses a %u.
func decimal(f []byte, i int) (v uint64, end int, ok bool) {
	j := i
	for ; j < len(f) && '0' <= f[j] && f[j] <= '9'; j++ {
		high, low := bits.Mul64(v, 10)
		sum, carry := bits.Add64(low, uint64(f[j]-'0'), 0)
		if high|carry != 0 {
			break
		}
		v = sum
	}
	return ended(f, i, j, v, j > i)
}

// hexadecimal parses the digits after 0x.
func hexadecimal(f []byte, i int) (v uint64, end int, ok bool) {
	const safe = 16 // digits that fit into a uint64, whatever they are
	j := i + 2
	for _, c := range f[j:min(len(f), j+safe)] {
		d := hexDigits[c]
		if d == 0 {
			return ended(f, i, j, v, j > i+2)
		}
		v = v<<4 | uint64(d-1)
		j++
	}
	// a further digit fits only if the first four bits of v are 0
	for j < len(f) && hexDigits[f[j]] != 0 && v>>60 == 0 {
		v = v<<4 | uint64(hexDigits[f[j]]-1)
		j++
	}
	return ended(f, i, j, v, j > i+2)
}

// ended returns the results of a number parser that read v up to j. If ok is not set, or the field
// does not end at j, the results are 0, the field's end and false.
func ended(f []byte, i, j int, v uint64, ok bool) (uint64, int, bool) {
	if ok && (j == len(f) || f[j] == ':') {
		return v, j, true
	}
	return 0, fieldEnd(f, i), false
}

// hexID parses a build ID of up to 64 bytes. Unlike the other parsers, it returns the end of the
// field only if ok is set.
func hexID(f []byte, i int) (end int, ok bool) {
	const maxDigits = 2 * 64
	j := i
	for j < len(f) && j-i <= maxDigits && hexDigits[f[j]] != 0 {
		j++
	}
	return j, j > i && j-i <= maxDigits && (j == len(f) || f[j] == ':')
}

// mode parses a set of permissions, which may consist of punctuation only: "---p".
func mode(f []byte, i int) (m Mode, end int, ok bool) {
	j := i
	for ; j < len(f) && f[j] != ':'; j++ {
		switch f[j] | 0x20 {
		case 'r':
			m |= Read
		case 'w':
			m |= Write
		case 'x':
			m |= Exec
		case 'p', 's', '-': // private, shared, not allowed
		default:
			return 0, fieldEnd(f, i), false
		}
	}
	return m, j, j > i
}

// pcKind parses the optional field after an address. The parameter end is the offset after the
// address.
func pcKind(f []byte, end int) PCKind {
	// the field is nearly always ra or pc: these are tested without a search for its end
	if n := len(f) - end; n < 3 || n > 3 && f[end+3] != ':' {
		return Ambiguous
	}
	switch string(f[end+1 : end+3]) {
	case "ra":
		return ReturnAddress
	case "pc":
		return Precise
	}
	return Ambiguous
}

// nameFault returns a fault if the name f[i:end] contains '}' or a line end.
func nameFault(f []byte, i, end int, expected string) fault {
	if name := f[i:end]; bytes.IndexByte(name, '}') >= 0 || bytes.IndexByte(name, '\n') >= 0 {
		return fault{i, end, expected + " without } or line end"}
	}
	return fault{}
}

// hexDigits holds the value of each hexadecimal digit plus 1; 0 for other bytes.
var hexDigits = [256]uint8{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'A': 11, 'B': 12, 'C': 13, 'D': 14, 'E': 15, 'F': 16,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16,
}
