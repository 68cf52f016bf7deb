package deflate

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

const (
	// Window is the number of bytes that a match may reach back: RFC 1951, 2.
	Window = 1 << 15

	maxMatch  = 258       // bytes of a match
	found     = 6         // bytes that must be equal for the search; short matches save little
	blockSize = 128 << 10 // bytes of text in a block, about
	tableBits = 13        // the table then fits into the first cache of a processor, beside text
	margin    = 32        // bytes at the end of a block without a search, so that loads stay within it
	stride    = 4         // bytes from one search, of three places, to the next
	patience  = 5         // a search in bytes without a match skips one byte more for each 1<<patience

	endOfBlock = 256 // symbol
)

// A sequence is literals and a match after them: the number of the literals from bit 0 on, the
// length of the match from bit 32 on (0 for none), and its distance less one from bit 48 on.
type sequence uint64

// An Encoder compresses one text at a time, and reuses its memory. The zero value is ready for use.
type Encoder struct {
	table     [1 << tableBits]uint16 // low bits of places in the text, by the hash of found bytes
	sequences []sequence
	literals  []byte
	lengths   [512]uint32 // numbers of matches by their length; more than needed, for a mask
	distances [32]uint32  // by their symbol; more than needed, for a mask

	codes codes
	w     bitWriter
}

// A Part is a range of a text that has been compressed before. Matches of other text do not
// refer to it.
type Part struct {
	Start, End int
	Deflated   []byte // whole blocks that end with a byte; none is the last one of a stream
}

// AppendGzip appends text as a file of gzip. parts are in the order of the text.
func (e *Encoder) AppendGzip(dst, text []byte, parts []Part) []byte {
	clear(e.table[:])
	e.w = bitWriter{out: append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255)} // fast; no time, no system
	at := 0
	for i := range parts {
		p := &parts[i]
		if at < p.Start {
			e.appendBlocks(text, at, p.Start)
			e.w.align()
		}
		e.w.out = append(e.w.out, p.Deflated...)
		at = p.End
	}
	e.appendBlocks(text, at, len(text))
	out := e.w.end()
	e.w.out = nil
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(text))
	return binary.LittleEndian.AppendUint32(out, uint32(len(text)))
}

// appendBlocks appends text[from:to]. Its matches may be before it.
func (e *Encoder) appendBlocks(text []byte, from, to int) {
	if e.literals == nil {
		e.literals = make([]byte, 0, blockSize*5/4+margin)
	}
	for from < to {
		end := from + blockSize
		if to-end < blockSize/4 {
			end = to
		}
		e.find(text[:end], from)
		e.writeBlock()
		from = end
	}
}

// find divides text[from:] into sequences.
func (e *Encoder) find(text []byte, from int) {
	e.sequences, e.literals = e.sequences[:0], e.literals[:0]
	table := &e.table
	literal, at := from, from
	for limit := len(text) - margin; at <= limit; {
		word := load(text, at)
		h0, h1, h2 := hash(word), hash(word>>8), hash(word>>16)
		d0, d1, d2 := uint16(at)-table[h0], uint16(at+1)-table[h1], uint16(at+2)-table[h2]
		table[h0], table[h1], table[h2] = uint16(at), uint16(at+1), uint16(at+2)
		// A place in the table may be older than its 16 bits, so text at the distance is compared.
		x0 := (word ^ load(text, max(at-int(d0), 0))) << (64 - 8*found)
		x1 := (word>>8 ^ load(text, max(at+1-int(d1), 0))) << (64 - 8*found)
		x2 := (word>>16 ^ load(text, max(at+2-int(d2), 0))) << (64 - 8*found)
		if x0 != 0 && x1 != 0 && x2 != 0 {
			at += stride + (at-literal)>>patience
			continue
		}
		distance, skip := int(d2), 2
		if x1 == 0 {
			distance, skip = int(d1), 1
		}
		if x0 == 0 {
			distance, skip = int(d0), 0
		}
		match := at + skip - distance
		if uint(distance-1) >= Window || match < 0 {
			at += stride
			continue
		}
		at += skip
		n := common(text, match, at)
		if match >= 8 {
			before := bits.LeadingZeros64(load(text, at-8)^load(text, match-8)) / 8
			before = min(before, at-literal)
			at, n = at-before, n+before
		}
		e.add(text[literal:], at-literal, n, uint32(distance-1))
		at += n
		literal = at
		if at <= limit {
			table[hash(load(text, at-2))] = uint16(at - 2)
		}
	}
	e.literals = append(e.literals, text[literal:]...)
	e.sequences = append(e.sequences, sequence(len(text)-literal))
}

// add adds a sequence: the first bytes of text, and a match of n bytes after them.
func (e *Encoder) add(text []byte, literals, n int, distance uint32) {
	kept := len(e.literals)
	if literals <= 16 && len(text) >= 16 { // without a loop: the room is for more
		to := e.literals[kept : kept+16]
		binary.LittleEndian.PutUint64(to, load(text, 0))
		binary.LittleEndian.PutUint64(to[8:], load(text, 8))
		e.literals = e.literals[:kept+literals]
	} else {
		e.literals = append(e.literals, text[:literals]...)
	}
	symbol, _ := distanceSymbol(distance)
	for n > maxMatch {
		length := min(maxMatch, n-minMatch)
		e.lengths[length]++
		e.distances[symbol&31]++
		e.sequences = append(e.sequences, sequence(literals)|sequence(length)<<32|sequence(distance)<<48)
		literals, n = 0, n-length
	}
	e.lengths[n&511]++
	e.distances[symbol&31]++
	e.sequences = append(e.sequences, sequence(literals)|sequence(n)<<32|sequence(distance)<<48)
}

func load(text []byte, at int) uint64 { return binary.LittleEndian.Uint64(text[at:]) }

// hash returns the place in the table for the first bytes of a word.
func hash(word uint64) uint32 {
	return uint32(word << (64 - 8*found) * 227718039650203 >> (64 - tableBits))
}

// common returns the number of bytes that are equal from a and from b on. a is before b, and 16
// bytes follow b.
func common(text []byte, a, b int) int {
	// Most matches are short: the first 16 bytes take one branch.
	first := bits.TrailingZeros64(load(text, a)^load(text, b)) / 8
	n := first + bits.TrailingZeros64(load(text, a+8)^load(text, b+8))/8&-(first/8)
	if n < 16 {
		return n
	}
	for ; b+n+8 <= len(text); n += 8 {
		if x := load(text, a+n) ^ load(text, b+n); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for b+n < len(text) && text[a+n] == text[b+n] {
		n++
	}
	return n
}
