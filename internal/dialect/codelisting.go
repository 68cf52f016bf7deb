package dialect

import (
	"bytes"
	"encoding/binary"
)

// A Listing is Linux's listing of the code around a failed instruction:
//
//	Code: 89 e5 <89> 3a …
//	Code: a9bf7bfd (f9000001)
type Listing struct {
	Before int    // bytes of the line before "Code:"
	Bytes  []byte // in memory order
	At     int    // offset in Bytes of the failed instruction
	Arm64  bool   // AArch64 code; x86-64 code if false
}

const listingMark = "Code: "

// maxListing bounds the bytes of a line that is searched: x86 lists 64 bytes of code.
const maxListing = 1024

// ListedCode returns the listing in a line, with or without line end. ok is false for a line
// without a listing or longer than maxListing, and for code of other machines. Listings of 32-bit
// Arm have AArch64's form, but most instructions begin with the condition "always", 0xe.
func ListedCode(line []byte) (l Listing, ok bool) {
	if len(line) > maxListing {
		return l, false
	}
	at := bytes.Index(line, []byte(listingMark))
	if at < 0 || !standsFree(line, at) {
		return l, false
	}
	c, ok := parseCode(line[at+len(listingMark):])
	if !ok {
		return l, false
	}
	l.Before = at
	switch c.Width {
	case 1:
		for _, unit := range c.Units {
			l.Bytes = append(l.Bytes, byte(unit))
		}
		l.At = c.At
	case 4:
		always := 0
		for _, unit := range c.Units {
			l.Bytes = binary.LittleEndian.AppendUint32(l.Bytes, unit)
			if unit>>28 == 0xe {
				always++
			}
		}
		l.At, l.Arm64 = 4*c.At, true
		return l, 2*always < len(c.Units)
	default:
		return l, false
	}
	return l, true
}
