package inflate

import "math/bits"

// An entry of a table describes a symbol. For literals and lengths:
//
//	bits 0-7    the number of bits of the symbol, with its extra bits
//	bits 8-11   the number without the extra bits
//	bits 16-28  the literal, the least length, or the start of a further table
//	bits 29-31  flags
//
// Likewise for distances, with the least distance in bits 16-30. The entry 0 means that no symbol
// has these bits.
const (
	literalFlag = 1 << 31
	specialFlag = 1 << 30 // in the table of literals: neither a literal nor a length
	// special: refers to a further table; bits 0-7 are the number of bits used so far, bits 8-11
	// the number of bits that index the further table
	furtherFlag  = 1 << 29
	endFlag      = 1 << 15 // special: the end of the block
	farFlag      = 1 << 31 // in the table of distances: refers to another table
	literalBits  = 11      // bits that index the first table of literals and lengths
	distanceBits = 9
	maxCode      = 15 // most bits of a symbol (RFC 1951, 3.2.7)
	endOfBlock   = 256
)

// literalEntry returns the entry of a literal or length, or 0 for a symbol that must not occur.
// build adds the number of bits of the symbol's code.
func literalEntry(symbol int) uint32 {
	switch {
	case symbol < endOfBlock:
		return literalFlag | uint32(symbol)<<16
	case symbol == endOfBlock:
		return specialFlag | endFlag
	case symbol > 285:
		return 0
	case symbol == 285:
		return maxMatch << 16
	}
	n := symbol - 257
	if n < 8 {
		return uint32(n+3) << 16
	}
	extra := n/4 - 1
	return uint32((4+n%4)<<extra+3)<<16 | uint32(extra)
}

func distanceEntry(symbol int) uint32 {
	if symbol > 29 {
		return 0
	}
	if symbol < 4 {
		return uint32(symbol+1) << 16
	}
	extra := symbol/2 - 1
	return uint32((2+symbol%2)<<extra+1)<<16 | uint32(extra)
}

func codeEntry(symbol int) uint32 { return literalFlag | uint32(symbol)<<16 }

// build fills table for symbols whose codes have these lengths. The first width bits of a code
// index the table. The rest of a longer code indexes a further table, for which table must have
// room. further has the flags of the entries that refer to further tables. build returns false if
// no code has these lengths. An incomplete code is allowed only without symbols, or with one symbol
// of one bit.
func build(table []uint32, width uint, lengths []uint8, entry func(symbol int) uint32, further uint32) bool {
	var count [maxCode + 1]int
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	longest := uint(0)
	left := 1
	used := 0
	for n := 1; n <= maxCode; n++ {
		left = left<<1 - count[n]
		if left < 0 {
			return false // more symbols than codes
		}
		if count[n] > 0 {
			longest = uint(n)
		}
		used += count[n]
	}
	if left > 0 && !(used == 0 || used == 1 && count[1] == 1) {
		return false
	}
	clear(table[:1<<width])
	var next [maxCode + 2]uint32
	for n := 1; n <= maxCode; n++ {
		next[n+1] = (next[n] + uint32(count[n])) << 1
	}
	free := 1 << width
	extra := uint(0) // bits that index a further table
	if longest > width {
		extra = longest - width
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		code := next[n]
		next[n]++
		e := entry(symbol)
		if e != 0 {
			e = e&^0xff | uint32(n)<<8 | (uint32(n) + e&0xff)
		}
		reversed := uint(bits.Reverse16(uint16(code)) >> (16 - n))
		if uint(n) <= width {
			for i := reversed; i < 1<<width; i += 1 << n {
				table[i] = e
			}
			continue
		}
		first := &table[reversed&(1<<width-1)]
		if *first == 0 {
			*first = further | uint32(free)<<16 | uint32(extra)<<8 | uint32(width)
			clear(table[free : free+1<<extra])
			free += 1 << extra
		}
		start := int(*first >> 16 & 0x1fff)
		if e != 0 {
			// In a further table, the two numbers of bits do not include the width bits that index
			// the first table.
			e -= uint32(width)<<8 | uint32(width)
		}
		for i := reversed >> width; i < 1<<extra; i += 1 << (uint(n) - width) {
			table[start+int(i)] = e
		}
	}
	return true
}

// fixed sets the tables for fixed codes (RFC 1951, 3.2.6).
func (d *decoder) fixed() {
	if d.isFixed {
		return // a stream may consist of tiny blocks only
	}
	d.isFixed = true
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	build(d.literals[:], literalBits, lengths[:], literalEntry, specialFlag|furtherFlag)
	var distances [32]uint8
	for i := range distances {
		distances[i] = 5
	}
	build(d.distances[:], distanceBits, distances[:], distanceEntry, farFlag)
}

// dynamic reads a block's tables (RFC 1951, 3.2.7).
func (d *decoder) dynamic() error {
	if err := d.need(); err != nil {
		return err
	}
	d.refill()
	literals, distances, codes := int(d.bits&31)+257, int(d.bits>>5&31)+1, int(d.bits>>10&15)+4
	d.use(14)
	if literals > 286 || distances > 30 {
		return corrupt("too many symbols")
	}
	order := [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	var codeLengths [19]uint8
	for i := range codes {
		if d.n < 3 {
			d.refill()
		}
		codeLengths[order[i]] = uint8(d.bits & 7)
		d.use(3)
	}
	const codeBits = 7
	var table [1 << codeBits]uint32
	if !build(table[:], codeBits, codeLengths[:], codeEntry, 0) {
		return corrupt("the code for the lengths is not valid")
	}
	var lengths [286 + 30 + 138]uint8
	for i := 0; i < literals+distances; {
		if err := d.need(); err != nil {
			return err
		}
		d.refill()
		e := table[d.bits&(1<<codeBits-1)]
		if e == 0 {
			return corrupt("bits that are not a code length")
		}
		d.use(uint(e & 0xff))
		symbol := uint8(e >> 16)
		if symbol < 16 {
			lengths[i] = symbol
			i++
			continue
		}
		var value uint8
		var n int
		switch symbol {
		case 16:
			if i == 0 {
				return corrupt("a repetition without a length before it")
			}
			value, n = lengths[i-1], int(d.bits&3)+3
			d.use(2)
		case 17:
			n = int(d.bits&7) + 3
			d.use(3)
		default:
			n = int(d.bits&127) + 11
			d.use(7)
		}
		if i+n > literals+distances {
			return corrupt("more lengths than symbols")
		}
		for range n {
			lengths[i] = value
			i++
		}
	}
	d.isFixed = false
	if lengths[endOfBlock] == 0 {
		return corrupt("a block without an end")
	}
	if !build(d.literals[:], literalBits, lengths[:literals], literalEntry, specialFlag|furtherFlag) ||
		!build(d.distances[:], distanceBits, lengths[literals:literals+distances], distanceEntry, farFlag) {
		return corrupt("the code of a block is not valid")
	}
	return nil
}
