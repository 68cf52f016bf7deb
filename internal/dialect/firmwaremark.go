package dialect

import (
	"bytes"
	"encoding/binary"
)

// shortNumber is the least number of hexadecimal digits in a firmware address without the prefix
// 0x.
const shortNumber = 8

// NextFirmware returns the offset in b of the first number in b[at:] that may be a firmware
// address, or len(b). b[at:] must begin with a whole line. A [ProgramSearch] finds the other lines
// that [Reader.Firmware] needs.
//
// All bytes of a log pass through NextFirmware, so it searches only for the 'x' of a prefix and for
// groups of four digits. A number without a prefix has at least eight digits: see nextLong.
func NextFirmware(b []byte, at int) int {
	first := at
	for at < len(b) {
		long, next := nextLong(b, first, at, min(at+numberStep, len(b)))
		for at < long {
			i := bytes.IndexByte(b[at:long], 'x')
			if i < 0 {
				break
			}
			at += i + 1
			if zero := at - 2; zero >= 0 && b[zero] == '0' && (zero == 0 || beforeAddress[b[zero-1]]) && mayHaveAddress(b, zero) {
				return zero
			}
		}
		if long < next {
			return long
		}
		at = next
	}
	return len(b)
}

// beforeAddress is the set of bytes before a prefixed number for which mayHaveAddress may return
// true.
var beforeAddress = [256]bool{' ': true, '\t': true, '\n': true, ']': true, '<': true, ':': true, '=': true, 'm': true, 'K': true, 'B': true}

// numberStep is the number of bytes that NextFirmware searches first for a long number, and then
// for a number with the prefix 0x. It is a multiple of shortNumber.
const numberStep = 512

// nextLong returns, as long, the offset of the first number of at least eight digits in b[at:to]
// that may be an address, with or without a prefix. It ignores digits before b[first]. The caller
// continues the search at the offset next. If there is no such number, both results are next.
//
// Wherever a number of eight digits begins, it fills the first or last four bytes of a group of
// eight bytes.
func nextLong(b []byte, first, at, to int) (long, next int) {
	const half = shortNumber / 2
	next = to
	for i := at; i < to; {
		var x uint64
		switch {
		case i+shortNumber <= len(b):
			x = binary.LittleEndian.Uint64(b[i:])
		case i+half <= len(b):
			x = uint64(binary.LittleEndian.Uint32(b[i:]))
		}
		no := noHex(x)
		if uint32(no) != 0 && no>>32 != 0 {
			i += shortNumber
			continue
		}
		start := i
		if uint32(no) != 0 {
			start += half
		}
		end := hexDigits(b, start)
		for start > first && isHex(b[start-1]) {
			start--
		}
		next = max(next, end)
		if end-start >= shortNumber && !isWordAt(b, end) && mayBeLong(b, start, end) {
			return start, next
		}
		if n := (end - i) / shortNumber * shortNumber; n > 0 && (end-i)%shortNumber < half {
			i += n
		} else {
			i += n + shortNumber // a digit after the number is in the second half
		}
	}
	return next, next
}

// mayBeLong reports whether the digits b[start:end] may be an address, or the hash of the program.
func mayBeLong(b []byte, start, end int) bool {
	if start >= 2 && b[start-2] == '0' && b[start-1] == 'x' {
		start -= len("0x")
	}
	if start > 0 && isWord(b[start-1]) && !colorEnds(b, start) {
		return false
	}
	if blanks := blanksBefore(b, start); blanks < start && end-start <= len("0x12345678") && !endsWith(b, blanks, ":") && !endsWith(b, blanks, "=") {
		return isArgument(b[:blanks]) // first address in a list
	}
	return mayHaveAddress(b, start)
}

// isArgument reports whether the last word of b may be a flag of addr2line or a file: it begins
// with "-" or contains a dot. Only the end of a long word is examined.
func isArgument(b []byte) bool {
	from := len(b)
	for from > 0 && len(b)-from < maxSequence && b[from-1] != ' ' && b[from-1] != '\t' && b[from-1] != '\n' {
		from--
	}
	return from < len(b) && (b[from] == '-' || bytes.IndexByte(b[from:], '.') >= 0)
}

// mayHaveAddress reports whether the text in b[:at] may name a register or another address.
func mayHaveAddress(b []byte, at int) bool {
	if endsWith(b, at, "[<") {
		at -= len("[<")
	}
	end := blanksBefore(b, at)
	if colorEnds(b, end) {
		return true
	}
	switch {
	case end == 0 || b[end-1] == '\n' || b[end-1] == ']': // in a list with one address on each line
		return hasAt(b, at, "0x") && hexDigits(b, at+len("0x")) == at+len("0x12345678") && !isWordAt(b, at+len("0x12345678"))
	case b[end-1] == ':' || b[end-1] == '=':
		end = blanksBefore(b, end-1)
	case end == at:
		return false
	}
	if end > 0 && b[end-1] == ')' {
		end--
	}
	if colorEnds(b, end) {
		return true
	}
	start := end
	for start > 0 && end-start <= maxRegisterName && isWord(b[start-1]) {
		start--
	}
	name := b[start:end]
	switch {
	case len(name) > maxRegisterName || len(name) == 0:
		return false
	case registerOf(name).ok:
		return true
	case isHex(name[0]) && hexDigits(name, 0) == len(name): // in a line of a list, or of a stack
		return true
	}
	switch string(name) {
	case "Backtrace", "SHA256", "x1", "EL3", "EL2", "EL1":
		return true
	}
	return false
}

const maxRegisterName = len("stacked_pc")
