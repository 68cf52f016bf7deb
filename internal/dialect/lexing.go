package dialect

import (
	"encoding/binary"
	"math/bits"
)

// hexDigits returns the end of the hexadecimal digits in b from the given offset.
func hexDigits(b []byte, at int) int {
	for at+8 <= len(b) {
		if n := hexPrefix(binary.LittleEndian.Uint64(b[at:])); n < 8 {
			return at + n
		}
		at += 8
	}
	for at < len(b) && isHex(b[at]) {
		at++
	}
	return at
}

// hexPrefix returns the number of hexadecimal digits at the start of the eight bytes of x, lowest
// byte first. It has no branch, which would often be mispredicted, since the lengths of numbers
// vary.
func hexPrefix(x uint64) int { return bits.TrailingZeros64(noHex(x)) / 8 }

// noHex sets the high bit of each byte of x that is not a hexadecimal digit, and clears all other
// bits.
func noHex(x uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	digit := x ^ '0'*ones               // 0 to 9 for a decimal digit
	letter := (x | ' '*ones) ^ '`'*ones // 1 to 6 for a letter
	// the sums set the high bit of each byte whose low seven bits are larger than 9, 6 and 0,
	// respectively
	noDigit := digit&^high + (0x7f-9)*ones
	noLetter := letter&^high + (0x7f-6)*ones | ^(letter&^high + 0x7f*ones)
	return (noDigit&noLetter | x) & high
}

func isHex(c byte) bool { return hexValues[c] < 16 }

// hexValues are the values of hexadecimal digits; 16 for other bytes.
var hexValues = func() (values [256]byte) {
	for c := range values {
		values[c] = 16
	}
	for i, c := range "0123456789abcdef" {
		values[c] = byte(i)
	}
	for i, c := range "ABCDEF" {
		values[c] = byte(10 + i)
	}
	return values
}()

func isDigit(c byte) bool { return c-'0' < 10 }

func isWord(c byte) bool {
	return isDigit(c) || isLetter(c) || c == '_'
}

func isLetter(c byte) bool { return c|0x20-'a' < 26 }

// hexAt parses the hexadecimal number at the given offset of b, without a prefix, and returns its
// end. ok is false without a digit, or for more than 64 bits.
func hexAt(b []byte, at int) (n uint64, end int, ok bool) {
	for end = at; end < len(b); end++ {
		v := hexValues[b[end]]
		if v == 16 {
			break
		}
		n = n<<4 | uint64(v)
	}
	if end == at {
		return 0, at, false
	}
	for at < end-16 && b[at] == '0' {
		at++
	}
	if end-at > 16 {
		return 0, end, false
	}
	return n, end, true
}

// prefixedHex is hexAt for a number with the prefix "0x" at the given offset.
func prefixedHex(b []byte, at int) (n uint64, end int, ok bool) {
	if !hasAt(b, at, "0x") {
		return 0, at, false
	}
	return hexAt(b, at+2)
}

// decimalAt parses a decimal number of at most nine digits at the given offset of b, and returns
// its end.
func decimalAt(b []byte, at int) (n, end int, ok bool) {
	end = at
	for end < len(b) && isDigit(b[end]) {
		if end-at == 9 {
			return 0, end, false
		}
		n = n*10 + int(b[end]-'0')
		end++
	}
	return n, end, end > at
}

// decimalBefore parses the decimal number of at most nine digits at the end of b[:end], and returns
// its start. ok is false without such a number; end may be negative.
func decimalBefore(b []byte, end int) (n, start int, ok bool) {
	if end < 0 {
		return 0, end, false
	}
	start = end
	for start > 0 && isDigit(b[start-1]) {
		if start--; end-start > 9 {
			return 0, start, false
		}
	}
	n, _, ok = decimalAt(b, start)
	return n, start, ok
}

// hexBefore returns the start of the hexadecimal digits at the end of b[:end].
func hexBefore(b []byte, end int) (start int) {
	for end > 0 && isHex(b[end-1]) {
		end--
	}
	return end
}

// blanksBefore returns the start of the blanks at the end of b[:end].
func blanksBefore(b []byte, end int) (start int) {
	for end > 0 && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	return end
}

// blanksAfter returns the end of the blanks in b from the given offset.
func blanksAfter(b []byte, at int) (end int) {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
		at++
	}
	return at
}

func hasAt(b []byte, at int, s string) bool {
	return at >= 0 && at <= len(b) && len(b)-at >= len(s) && string(b[at:at+len(s)]) == s
}

func endsWith(b []byte, end int, s string) bool { return hasAt(b, end-len(s), s) }

// standsFree reports whether a frame may begin at start: no letter, digit or underscore precedes
// it.
func standsFree(b []byte, start int) bool {
	return start == 0 || !isWord(b[start-1])
}

// onlyBlanks reports whether b has nothing but blanks from the given offset.
func onlyBlanks(b []byte, at int) bool { return blanksAfter(b, at) == len(b) }
