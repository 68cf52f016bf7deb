package dialect

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A Step has marks among 64 offsets: bit i of Marks is the offset At+i.
type Step struct {
	At    int
	Marks uint64
}

// MarkBytes has for each of the three bytes of a mark and each byte the set of marks with the byte
// at the place, as bits.
type MarkBytes [3][256]uint16

// Begin reports whether b, of at least three bytes, begins with a mark.
func (m *MarkBytes) Begin(b []byte) bool { return m[0][b[0]]&m[1][b[1]]&m[2][b[2]] != 0 }

// Sift removes the offsets from steps at which no mark of marks is, and most of those at which
// [Reader.MayMatch] returns false. It returns the steps that have others, in the memory of steps. The
// offsets are from from on in b, which is whole lines.
//
// Nearly each number of a log without frames is rejected here, by the few bytes around it: most by the
// two bytes before a blank and the number, without a jump, which would be guessed wrong more often than
// not. That takes a fifth of the time of MayMatch.
func (r *Reader) Sift(b []byte, from int, marks *MarkBytes, steps []Step) []Step {
	r.load()
	if len(steps) > 0 {
		steps = r.of[anchor0x].siftWords(b, from, marks, steps)
	}
	if len(steps) > 0 {
		steps = r.of[anchor0x].siftNumbers(b, from, steps)
	}
	return steps
}

// A near is the text around a mark of "0x".
type near [nearSize]byte

const (
	nearSize = 32
	markAt   = 11         // offset of the mark
	numberAt = markAt + 1 // of "0x"
	hexStart = numberAt + len("0x")
)

// blank0x is the mark of most numbers, as a number of three bytes.
const blank0x = ' ' | '0'<<8 | 'x'<<16

// setNear makes the tables for Sift, which looks at 16 digits of a number and two bytes after them: other
// digits, a colour and a second blank may have any grammar after them.
func (f *fits) setNear() {
	f.nearNext, f.nearThen = f.next, f.then
	for _, c := range []byte("0123456789abcdefABCDEF\x1b") {
		f.nearNext[c], f.lineEnd[c] = ^uint64(0), ^uint64(0)
	}
	for _, c := range []byte(" \t\x1b") {
		f.nearThen[c] = ^uint64(0)
	}
	f.lineEnd['\n'] = ^uint64(0)
	for back := range 256 {
		set := f.direct[' '] & f.back[back] &^ (f.shapes[twoBlanks] | f.shapes[wordNumber])
		if set == 0 && mayEnd[back]|mayEndColor[back] == 0 {
			for _, before := range []byte("mKB") {
				f.words[back<<2|int(before)>>6] |= 1 << (before & 63)
			}
			continue
		}
		for before := range 256 {
			unsure := mayEnd[back] | mayEndColor[back]&noLetter[before] | mayEndColor[before]
			if unsure != 0 || f.hasWord(set&f.beforeBack[before], byte(before), byte(back)) {
				f.words[back<<2|before>>6] |= 1 << (before & 63)
			}
		}
	}
}

// hasWord reports whether a word before one of the grammars of set may end with these two bytes.
func (f *fits) hasWord(set uint64, before, back byte) bool {
	for ; set != 0; set &= set - 1 {
		if words := f.grammars[bits.TrailingZeros64(set)].words; len(words) == 0 || slices.Contains(words, string([]byte{before, back})) {
			return true
		}
	}
	return false
}

// Classes of bytes, for Sift.
const (
	endsColor = 1 << iota // an escape sequence may end with it
	freeByte              // no letter
	unsureEnd             // the bytes before it are not checked
	blankByte
	afterNumber // it may be before the word of a wordNumber
)

var classes = func() (set [256]uint8) {
	for i := range set {
		c := byte(i)
		set[c] = mayEndColor[c]*endsColor | noLetter[c]*freeByte | mayEnd[c]*unsureEnd
		if c == ' ' || c == '\t' {
			set[c] |= blankByte | afterNumber
		}
		if isDigit(c) {
			set[c] |= afterNumber
		}
	}
	return set
}()

// word returns the number of blanks before the number of p, at most two, and the last bytes before them.
func (p *near) word() (blanks uint64, back, before, further byte) {
	one := uint64(classes[p[numberAt-1]]/blankByte) & 1
	blanks = one + uint64(classes[p[numberAt-2]]/blankByte)&one
	end := numberAt - blanks
	return blanks, p[end-1], p[end-2], p[end-3]
}

// unsure returns 0 if the set of grammars for the last bytes before the number of p is right: it is a
// number after a word, and no colour ends there.
func (p *near) unsure(back, before, further byte) uint64 {
	a, b, c := classes[back], classes[before], classes[further]
	color := a&(b/freeByte)&endsColor | b&(c/freeByte)&endsColor
	return uint64(color|a&unsureEnd) | uint64(binary.LittleEndian.Uint16(p[numberAt:])) ^ ('0' | 'x'<<8)
}

// isSet returns 1 if x is not 0, else 0.
func isSet(x uint64) uint64 { return (x | -x) >> 63 }

// siftWords is Sift by the bytes before a number after one blank.
func (f *fits) siftWords(b []byte, base int, marks *MarkBytes, steps []Step) []Step {
	n := 0
	for _, s := range steps {
		if from := base + s.At - len("at"); from >= 0 && from+len(stepText{}) <= len(b) {
			s.Marks = afterWords((*stepText)(b[from:]), marks, &f.words, s.Marks)
		}
		steps[n] = s
		n += int(isSet(s.Marks))
	}
	return steps[:n]
}

// afterWords returns those of left that siftWords keeps. The marks begin at two in text.
func afterWords(text *stepText, marks *MarkBytes, words *[1 << 16 / 64]uint64, left uint64) (kept uint64) {
	for ; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		near := binary.LittleEndian.Uint64(text[i&63:])
		other := near>>16&0xffffff ^ blank0x
		begins := uint64(marks[0][near>>16&0xff] & marks[1][near>>24&0xff] & marks[2][near>>32&0xff])
		short, long := uint64(text[i&63+len("at 0x12345678")]), uint64(text[i&63+len("at 0x0123456789abcdef")])
		whole := ((short - ' ' - 1) | (long - ' ' - 1)) >> 63
		keep := (words[near&0xffff>>6]>>(near&63)&1 | whole | isSet(other)) & isSet(begins)
		kept |= keep << (i & 63)
	}
	return kept
}

// A stepText is the text around the marks of a Step.
type stepText [64 + nearSize]byte

// siftNumbers is Sift by the numbers, and the bytes after them.
func (f *fits) siftNumbers(b []byte, base int, steps []Step) []Step {
	n := 0
	for _, s := range steps {
		if from := base + s.At - markAt; from >= 0 && from+len(stepText{}) <= len(b) {
			text := (*stepText)(b[from:])
			for left := s.Marks; left != 0; left &= left - 1 {
				i := bits.TrailingZeros64(left) & 63
				s.Marks ^= left & -left & (f.mayBe((*near)(text[i:i+nearSize])) - 1)
			}
		}
		steps[n] = s
		n += int(isSet(s.Marks))
	}
	return steps[:n]
}

// mayBe returns 0 if any returns false for the number of p because of the bytes of p, else 1.
func (f *fits) mayBe(p *near) uint64 {
	if p[markAt] == '+' { // most are those of frames
		return 1
	}
	blanks, back, before, further := p.word()
	if p.unsure(back, before, further) != 0 {
		return 1
	}
	set := f.direct[p[markAt]] & f.back[back] & f.beforeBack[before]
	set &^= f.shapes[wordNumber] & -p.noNumberBefore(numberAt-blanks)
	set &^= f.shapes[twoBlanks] & (blanks>>1 - 1)
	if set == 0 {
		return 0
	}
	low, high := binary.LittleEndian.Uint64(p[hexStart:]), binary.LittleEndian.Uint64(p[hexStart+8:])
	if uint32(low)|0x20202020 != ffff {
		set &^= f.shapes[kernelHigh]
	}
	digits := hexPrefix(low)
	digits += hexPrefix(high) & -(digits >> 3)
	if digits&7 != 0 {
		set &^= f.shapes[wordNumber]
	}
	next, then := p[(hexStart+digits)&(nearSize-1)], p[(hexStart+digits+1)&(nearSize-1)]
	return isSet(set & f.nearNext[next] & (f.nearThen[then] | f.lineEnd[next]))
}

// noNumberBefore returns 1 if the word that ends at end follows no number, 0 if it may do so.
func (p *near) noNumberBefore(end uint64) uint64 {
	const high, noBlank = 0x8080808080808080, 0x7f7f7f7f7f7f7f7f - ' '*0x0101010101010101
	word := binary.LittleEndian.Uint64(p[(end-8)%nearSize:])
	blanks := ^(word&^high + noBlank | word) & high // and control characters
	end -= uint64(bits.LeadingZeros64(blanks) / 8)
	return 1 &^ (isSet(uint64(p[(end-1)%nearSize])^' ') | uint64(classes[p[(end-2)%nearSize]]/afterNumber))
}
