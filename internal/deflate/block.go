package deflate

import (
	"encoding/binary"
	"slices"
)

// A bitWriter appends bits to out. The bytes of out are complete; fewer than 8 bits wait.
type bitWriter struct {
	out   []byte
	word  uint64
	width uint // bits in word
}

// put appends a code: see codes.
func (w *bitWriter) put(code uint32) { w.bits(code>>8, uint(code&255)) }

// bits appends the low n bits of value, at most 32.
func (w *bitWriter) bits(value uint32, n uint) {
	w.word |= uint64(value) << w.width
	for w.width += n; w.width >= 8; w.width -= 8 {
		w.out = append(w.out, byte(w.word))
		w.word >>= 8
	}
}

// align ends the byte, by an empty stored block.
func (w *bitWriter) align() {
	w.bits(0, 3)
	w.flush()
	w.out = append(w.out, 0, 0, 0xff, 0xff)
}

// end ends the last byte, by an empty last block, and returns the bytes.
func (w *bitWriter) end() []byte {
	w.bits(1|1<<1, 10) // last, with fixed codes; the end of a block is seven zeros
	w.flush()
	return w.out
}

func (w *bitWriter) flush() {
	if w.width > 0 {
		w.out = append(w.out, byte(w.word))
	}
	w.word, w.width = 0, 0
}

// writeBlock writes the sequences of a block.
func (e *Encoder) writeBlock() {
	var frequencies [numLiterals]uint32
	for _, c := range e.literals {
		frequencies[c]++
	}
	frequencies[endOfBlock] = 1
	for i, n := range e.lengths[minMatch : maxMatch+1] {
		frequencies[endOfBlock+1+lengthSymbol(uint32(i+minMatch))] += n
	}
	clear(e.lengths[:])
	c := &e.codes
	literalBits, distanceBits := c.bits[:numLiterals], c.bits[numLiterals:]
	c.lengths(frequencies[:], maxBits, literalBits)
	c.lengths(e.distances[:numDistances], maxBits, distanceBits)
	assign(c.literals[:], literalBits)
	assign(c.distances[:], distanceBits)
	e.writeHeader()
	c.setMatches()

	size := 0
	for i, n := range frequencies {
		size += int(n) * int(literalBits[i])
	}
	// a match has at most 5 and 13 extra bits
	w := &e.w
	w.out = slices.Grow(w.out, size/8+len(e.sequences)*4+3*8)
	writeSequences(w, c, e.sequences, e.literals)
	clear(e.distances[:])
	w.put(c.literals[endOfBlock])
}

// writeSequences writes sequences with their literals. The output has room for them, and for a
// word more.
func writeSequences(w *bitWriter, c *codes, all []sequence, literals []byte) {
	out := w.out[:cap(w.out)]
	at, word, width := len(w.out), w.word, w.width // fewer than 8 bits
	for _, s := range all {
		n := int(uint32(s))
		text := literals[:n]
		literals = literals[n:]
		for ; len(text) >= 4; text = text[4:] {
			p, q := c.literals[text[0]], c.literals[text[1]]
			r, s := c.literals[text[2]], c.literals[text[3]]
			first := uint64(p>>8) | uint64(q>>8)<<(p&63)
			second := uint64(r>>8) | uint64(s>>8)<<(r&63)
			half := (p + q) & 63
			word |= (first | second<<half) << (width & 63)
			width += uint(half + (r+s)&63)
			binary.LittleEndian.PutUint64(out[at:], word)
			at += int(width / 8)
			word >>= width & 56
			width &= 7
		}
		for _, l := range text {
			p := c.literals[l]
			word |= uint64(p>>8) << (width & 63)
			width += uint(p & 63)
		}
		length := uint32(s>>32) & 0xffff
		if length == 0 {
			break // the last one
		}
		p := c.matches[length] // up to 7 bits before, 3 literals and a length have 7+36+17
		word |= uint64(p>>8) << (width & 63)
		width += uint(p & 63)
		binary.LittleEndian.PutUint64(out[at:], word)
		at += int(width / 8)
		word >>= width & 56
		width &= 7
		distance := uint32(s >> 48)
		symbol, extra := distanceSymbol(distance)
		q := c.distances[symbol]
		word |= (uint64(q>>8) | uint64(distance&(1<<(extra&31)-1))<<(q&63)) << (width & 63)
		width += uint(q&63 + extra)
		binary.LittleEndian.PutUint64(out[at:], word)
		at += int(width / 8)
		word >>= width & 56
		width &= 7
	}
	binary.LittleEndian.PutUint64(out[at:], word) // up to 3 literals
	at += int(width / 8)
	w.out, w.word, w.width = out[:at], word>>(width&56), width&7
}

// codeOrder is the order in which the bits of the code for lengths are written: RFC 1951, 3.2.7.
const codeOrder = "\x10\x11\x12\x00\x08\x07\x09\x06\x0a\x05\x0b\x04\x0c\x03\x0d\x02\x0e\x01\x0f"

// Symbols for repeated numbers of bits.
const (
	repeatLast  = 16 // 3 to 6 times, 2 extra bits
	repeatZero  = 17 // 3 to 10 times, 3 extra bits
	repeatZeros = 18 // 11 to 138 times, 7 extra bits
)

// writeHeader writes the header of a block with codes of its own.
func (e *Encoder) writeHeader() {
	c, w := &e.codes, &e.w
	// symbols with their repetitions from bit 8 on
	var buffer [numLiterals + numDistances]uint32
	var frequencies [19]uint32
	symbols := buffer[:0]
	add := func(symbol, extra uint32) {
		frequencies[symbol]++
		symbols = append(symbols, extra<<8|symbol)
	}
	for i := 0; i < len(c.bits); {
		n := c.bits[i]
		count := 1
		for i+count < len(c.bits) && c.bits[i+count] == n {
			count++
		}
		i += count
		for n == 0 && count >= 11 {
			k := min(count, 138)
			add(repeatZeros, uint32(k-11))
			count -= k
		}
		if n == 0 && count >= 3 {
			add(repeatZero, uint32(count-3))
			count = 0
		}
		if n > 0 {
			add(uint32(n), 0)
			count--
		}
		for n > 0 && count >= 3 {
			k := min(count, 6)
			add(repeatLast, uint32(k-3))
			count -= k
		}
		for range count {
			add(uint32(n), 0)
		}
	}
	var widths [19]uint8
	var header [19]uint32
	c.lengths(frequencies[:], 7, widths[:])
	assign(header[:], widths[:])
	w.bits(2<<1, 3) // not the last block
	w.bits(numLiterals-257, 5)
	w.bits(numDistances-1, 5)
	n := len(codeOrder)
	for n > 4 && widths[codeOrder[n-1]] == 0 {
		n--
	}
	w.bits(uint32(n-4), 4)
	for _, symbol := range []byte(codeOrder[:n]) {
		w.bits(uint32(widths[symbol]), 3)
	}
	for _, s := range symbols {
		w.put(header[s&255])
		switch s & 255 {
		case repeatLast:
			w.bits(s>>8, 2)
		case repeatZero:
			w.bits(s>>8, 3)
		case repeatZeros:
			w.bits(s>>8, 7)
		}
	}
}
