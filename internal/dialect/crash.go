package dialect

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A Crash holds facts about a process that the kernel has killed, in addition to its frame. Later
// lines add to the Crash, so the frame's Reader owns it.
type Crash struct {
	Start, Size uint64 // address and size in bytes of the mapping of the code; Size is 0 if unknown
	Addr        uint64 // address of the frame, from a later line; 0 if unknown

	Codes []Code // listings of the first maxCodes lines of code after the frame
}

// Bounds of the listings for a crash, and of the crashes that may get a listing. If several
// processes die at once, listings may follow the last of their frames, and each may belong to any
// of them.
const (
	maxCodes   = 4
	maxCrashes = 4
)

// A Code is a listing of the code around a frame: Code: 89 e5 <89> 3a …
type Code struct {
	Units []uint32 // in memory order
	Width int      // bytes of a unit: 1, 2 or 4
	At    int      // index of the unit at the address of the frame
}

const (
	maxUnits  = 128 // units in a listing; the kernel lists 64 bytes on x86
	MinListed = 16  // bytes of a file that must match the listing; fewer may match other files
	MinValues = 4   // distinct units that a listing needs, because padding proves nothing
)

type deaths struct {
	crashes []*Crash // oldest first, at most maxCrashes
	at      int64    // line of the last crash; 0: none
}

// add returns a new Crash for a frame of the current line.
func (d *deaths) add(start, size uint64) *Crash {
	c := &Crash{Start: start, Size: size}
	if len(d.crashes) == maxCrashes {
		copy(d.crashes, d.crashes[1:])
		d.crashes = d.crashes[:maxCrashes-1]
	}
	d.crashes = append(d.crashes, c)
	return c
}

// addCode adds the listing in text, if any, to each crash with fewer than maxCodes listings.
func (d *deaths) addCode(text []byte) {
	if len(d.crashes) == 0 {
		return
	}
	listing, ok := parseCode(text)
	if !ok {
		return
	}
	for _, c := range d.crashes {
		if len(c.Codes) < maxCodes {
			c.Codes = append(c.Codes, listing)
		}
	}
}

// codeLine assigns the listing in a line to the last kernel frame, if that frame awaits a listing.
// Otherwise, the crashes before the line get the listing.
func codeLine(r *Reader, b []byte, at int) {
	text := b[at+len("ode: "):]
	if !r.kernel.takeCode(text, r.number, r.inPast) && !r.inPast {
		r.deaths.addCode(text)
	}
}

// counterLine sets the last crash's address from the program counter of a dump of registers. It
// ignores the counter if the address is known, or if the counter is outside of the mapping.
func counterLine(r *Reader, b []byte, at int) {
	if len(r.deaths.crashes) == 0 || r.inPast {
		return
	}
	c := r.deaths.crashes[len(r.deaths.crashes)-1]
	from := bytes.IndexByte(b[at:], ':') + at + 2
	addr, _, ok := hexAt(b, from)
	if ok && c.Addr == 0 && addr-c.Start < c.Size {
		c.Addr = addr
	}
}

// parseCode parses a listing: units of equal size, one of them in brackets. ok is false for other
// text, and for code that proves nothing: see MinListed and MinValues.
func parseCode(b []byte) (c Code, ok bool) {
	c.At = -1
	for _, word := range bytes.Fields(b) {
		if n := len(word); n > 2 && (word[0] == '<' && word[n-1] == '>' || word[0] == '(' && word[n-1] == ')') {
			if c.At >= 0 {
				return c, false
			}
			word, c.At = word[1:n-1], len(c.Units)
		}
		value, end, parsed := hexAt(word, 0)
		if width := len(word) / 2; !parsed || end != len(word) || len(word)%2 != 0 || width > 4 || c.Width != 0 && width != c.Width || len(c.Units) == maxUnits {
			return c, false
		} else {
			c.Width = width
		}
		c.Units = append(c.Units, uint32(value))
	}
	return c, c.At >= 0 && c.Width != 3 && len(c.Units)*c.Width >= MinListed && c.values() >= MinValues
}

// values returns a lower bound on the number of distinct units, at most 64. It counts units with
// equal hashes once.
func (c *Code) values() int {
	var seen uint64
	for _, u := range c.Units {
		seen |= 1 << (u * 0x9e3779b1 >> 26)
	}
	return bits.OnesCount64(seen)
}

// Bytes returns the bytes of the listing in memory, for this byte order.
func (c *Code) Bytes(order binary.ByteOrder) []byte {
	b := make([]byte, len(c.Units)*c.Width)
	for i, u := range c.Units {
		switch at := b[i*c.Width:]; c.Width {
		case 1:
			at[0] = byte(u)
		case 2:
			order.PutUint16(at, uint16(u))
		default:
			order.PutUint32(at, u)
		}
	}
	return b
}
