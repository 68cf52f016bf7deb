package llvmfilter

import (
	"bytes"
	"encoding/hex"
)

// address reads a memory address: zeros, or "0x" and hexadecimal digits that
// fit 64 bits, however many.
func (f *Filter) address(x field) (uint64, bool) {
	if len(x.text) > 0 && len(bytes.Trim(x.text, "0")) == 0 {
		return 0, true
	}
	if digits, ok := bytes.CutPrefix(x.text, []byte("0x")); ok {
		if v, ok := number(digits, 16); ok {
			return v, true
		}
	}
	f.unexpected("address", x)
	return 0, false
}

// integer reads a module ID or a size; what says which.
func (f *Filter) integer(what string, x field) (uint64, bool) {
	v, ok := number(radix(x.text))
	if !ok {
		f.unexpected(what, x)
	}
	return v, ok
}

// radix returns the digits of an integer and their radix, which a prefix
// tells: 0x, 0b, 0o, or 0 before another digit.
func radix(b []byte) (digits []byte, base uint64) {
	if len(b) < 2 || b[0] != '0' {
		return b, 10
	}
	switch c := b[1]; {
	case c == 'x' || c == 'X':
		return b[2:], 16
	case c == 'b' || c == 'B':
		return b[2:], 2
	case c == 'o':
		return b[2:], 8
	case c >= '0' && c <= '9':
		return b[1:], 8
	}
	return b, 10
}

// number reads digits that fit 64 bits.
func number(digits []byte, base uint64) (v uint64, ok bool) {
	if len(digits) == 0 {
		return 0, false
	}
	for _, c := range digits {
		d := uint64(c)
		switch {
		case c >= '0' && c <= '9':
			d -= '0'
		case c >= 'a' && c <= 'z':
			d -= 'a' - 10
		case c >= 'A' && c <= 'Z':
			d -= 'A' - 10
		default:
			return 0, false
		}
		if d >= base || v > (1<<64-1-d)/base {
			return 0, false
		}
		v = v*base + d
	}
	return v, true
}

// frameNumber reads the number of a frame: decimal digits.
func (f *Filter) frameNumber(x field) (uint64, bool) {
	v, ok := number(x.text, 10)
	if !ok {
		f.unexpected("frame number", x)
	}
	return v, ok
}

// buildID reads the bytes of a build ID; an odd digit stands for a byte of its
// own, at the front.
func (f *Filter) buildID(x field) ([]byte, bool) {
	digits := x.text
	if len(digits)%2 != 0 {
		digits = append([]byte{'0'}, digits...)
	}
	id := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(id, digits); err != nil || len(id) == 0 {
		f.unexpected("build ID", x)
		return nil, false
	}
	return id, true
}

// mode reads the mode of a map: some of r, w and x, in this order and either
// case. It returns them in lower case.
func (f *Filter) mode(x field) (string, bool) {
	var lower [3]byte
	if n := len(x.text); n <= len(lower) {
		for i, c := range x.text {
			lower[i] = c | 0x20
		}
		for _, m := range modes {
			if string(lower[:n]) == m {
				return m, true
			}
		}
	}
	f.unexpected("mode", x)
	return "", false
}

var modes = [...]string{"r", "rw", "rx", "rwx", "w", "wx", "x"}

// returnAddress reads the kind of a code address: whether it is one that a
// call returns to.
func (f *Filter) returnAddress(x field) (ra, ok bool) {
	switch string(x.text) {
	case "ra":
		return true, true
	case "pc":
		return false, true
	}
	f.unexpected("PC type", x)
	return false, false
}
