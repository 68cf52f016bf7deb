package dialect

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A Step holds the marks at 64 consecutive offsets: bit i of Marks is set for a mark at the offset
// At+i.
type Step struct {
	At    int
	Marks uint64
}

// MarkBytes is a set of marks, which are strings of three bytes. The zero value is an empty set.
type MarkBytes struct {
	// for each position and byte: one bit for each call of Add whose marks have the byte there
	places [3][256]uint16
	calls  int            // number of calls of Add
	kinds  [1 << 13]uint8 // by hashOf: notMark, blankMark or otherMark
}

// Kinds of three-byte strings. The kind is looked up by a hash of the string. So one in 300 strings
// that are not marks has the kind of a mark with the same hash.
const (
	notMark   = 0
	blankMark = 1 // blank0x
	otherMark = 3 // includes the bit of blankMark
)

// Add adds the marks that consist of a byte in first and the two bytes of rest. It may be called at
// most 16 times.
func (m *MarkBytes) Add(first, rest string) {
	bit := uint16(1) << m.calls
	m.calls++
	for _, c := range []byte(first) {
		m.places[0][c] |= bit
		mark, kind := uint32(c)|uint32(rest[0])<<8|uint32(rest[1])<<16, uint8(otherMark)
		if mark == blank0x {
			kind = blankMark
		}
		m.kinds[hashOf(mark)] |= kind
	}
	m.places[1][rest[0]] |= bit
	m.places[2][rest[1]] |= bit
}

// Begin reports whether b, of at least three bytes, begins with a mark.
func (m *MarkBytes) Begin(b []byte) bool {
	return m.places[0][b[0]]&m.places[1][b[1]]&m.places[2][b[2]] != 0
}

// hashOf returns the index in MarkBytes.kinds for mark, three bytes as a little-endian number.
func hashOf(mark uint32) uint32 { return mark * 0x9e3779b1 >> 19 }

// Prefilter removes from steps the offsets without a mark in marks, and most offsets at which no
// grammar matches. It returns the remaining steps, in the memory of steps. The offsets are relative
// to b[from]; b has whole lines.
//
// The few bytes around a number reject nearly all numbers in a log without frames. Each loop
// examines the numbers left by the previous one, without a branch, which would often be
// mispredicted. A number takes 2.5 ns in the first loop, 3 in the second, and 12 in the last.
func (r *Reader) Prefilter(b []byte, from int, marks *MarkBytes, steps []Step) []Step {
	r.load()
	if len(steps) == 0 || len(b) < nearSize {
		return steps
	}
	f := &r.of[anchor0x]
	var memory [prefilterSize]int32
	left := steps[:0]
	for len(steps) > 0 {
		var list []int32
		list, steps = flatten(memory[:0], steps)
		left = f.prefilter(b, from, marks, list, left)
	}
	return left
}

// prefilterSize bounds the offsets that are filtered together; most blocks have fewer. Their memory
// is on the stack: a Reader would keep it for as long as its log is followed.
const prefilterSize = 256

// prefilter is Prefilter for the offsets in list. It appends the remaining offsets to steps.
func (f *fits) prefilter(b []byte, from int, marks *MarkBytes, list []int32, steps []Step) []Step {
	left, unsure := f.prefilterWords(b, from, marks, list)
	if unsure < len(left) {
		left = prefilterWhole(b, from, left)
	}
	left = f.prefilterNumbers(b, from, left)
	for _, at := range left {
		n, first := len(steps), int(at)&^63
		if n == 0 || steps[n-1].At != first {
			steps = append(steps, Step{At: first})
			n++
		}
		steps[n-1].Marks |= 1 << (at & 63)
	}
	return steps
}

// A near is the text around a number with the prefix "0x", whose mark is at markAt.
type near [nearSize]byte

const (
	nearSize = 32
	markAt   = 11         // offset of the mark
	numberAt = markAt + 1 // offset of "0x"
	hexStart = numberAt + len("0x")
)

// blank0x is the mark of most numbers, as a three-byte number.
const blank0x = ' ' | '0'<<8 | 'x'<<16

// setNear makes the tables for Prefilter, which examines at most 16 digits of a number and the two
// bytes after them. Prefilter rejects no grammar if these two bytes begin with a further digit,
// have a colour, or end with a second blank.
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
		set := f.direct[' '] & f.back[back] &^ (f.shapes[twoBlanks] | f.shapes[wordNumber] | f.shapes[kernelHigh])
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

// hasWord reports whether a word that ends with the two given bytes may precede a frame of one of
// the kinds in set.
func (f *fits) hasWord(set uint64, before, back byte) bool {
	for ; set != 0; set &= set - 1 {
		if words := f.kinds[bits.TrailingZeros64(set)].first.words; len(words) == 0 || slices.Contains(words, string([]byte{before, back})) {
			return true
		}
	}
	return false
}

// Classes of bytes around a number, for Prefilter.
const (
	endsColor = 1 << iota // may end an escape sequence
	freeByte              // not a letter
	unsureEnd             // the bytes before it are not checked
	blankByte
	afterNumber // may precede the word of a wordNumber
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

// word returns the number of blanks before p's number, at most two, and the last three bytes before
// these blanks.
func (p *near) word() (blanks uint64, back, before, further byte) {
	one := uint64(classes[p[numberAt-1]]/blankByte) & 1
	blanks = one + uint64(classes[p[numberAt-2]]/blankByte)&one
	end := numberAt - blanks
	return blanks, p[end-1], p[end-2], p[end-3]
}

// unsure returns 0 if the number in p has the prefix 0x, and no line end, third blank or colour
// precedes it. Otherwise, the bytes in p before the number do not suffice to reject grammars.
func (p *near) unsure(back, before, further byte) uint64 {
	a, b, c := classes[back], classes[before], classes[further]
	color := a&(b/freeByte)&endsColor | b&(c/freeByte)&endsColor
	return uint64(color|a&unsureEnd) | uint64(binary.LittleEndian.Uint16(p[numberAt:])) ^ ('0' | 'x'<<8)
}

// isSet returns 1 if x is not 0, else 0.
func isSet(x uint64) uint64 { return (x | -x) >> 63 }

// flatten appends the offsets of the marks in steps to list, as long as list has room for 64 more,
// and returns the remaining steps. Nearly all steps have one or two marks, so flatten writes two
// for each step without a branch.
func flatten(list []int32, steps []Step) (full []int32, rest []Step) {
	for i, s := range steps {
		n := len(list)
		if cap(list)-n < 64 {
			return list, steps[i:]
		}
		to, left := (*[64]int32)(list[n:n+64]), s.Marks
		to[0] = int32(s.At + bits.TrailingZeros64(left))
		left &= left - 1
		to[1] = int32(s.At + bits.TrailingZeros64(left))
		left &= left - 1
		for i := 2; left != 0; i++ {
			to[i&63] = int32(s.At + bits.TrailingZeros64(left))
			left &= left - 1
		}
		list = list[:n+bits.OnesCount64(s.Marks)]
	}
	return list, nil
}

// unsureMark is set in a list entry if a grammar without the shape wordNumber may match at the
// number.
const unsureMark = math.MinInt32

// prefilterWords removes numbers after one blank if the two bytes before the blank exclude all
// grammars. It returns the number of entries in which it has set unsureMark.
func (f *fits) prefilterWords(b []byte, base int, marks *MarkBytes, list []int32) (left []int32, unsure int) {
	n := 0
	for _, at := range list {
		list[n] = at
		from := base + int(at) - markAt
		if uint(from) > uint(len(b)-nearSize) {
			n++
			continue
		}
		p := (*near)(b[from : from+nearSize])
		word := binary.LittleEndian.Uint16(p[markAt-2:])
		short, long := uint64(p[numberAt+len("0x12345678")]), uint64(p[numberAt+len("0x0123456789abcdef")])
		whole := ((short - ' ' - 1) | (long - ' ' - 1)) >> 63
		high := (uint64(binary.LittleEndian.Uint32(p[hexStart:])|0x20202020^ffff) - 1) >> 63
		kind := uint64(marks.kinds[hashOf(binary.LittleEndian.Uint32(p[markAt:])&0xffffff)])
		other := kind>>1 | kind&(f.words[word>>6]>>(word&63)|high)
		list[n] = at | int32(other<<31)
		n += int((other | kind&whole) & 1)
		unsure += int(other & 1)
	}
	return list[:n], unsure
}

// prefilterWhole removes entries without unsureMark if no number precedes the word before the
// entry's number. Only grammars with the shape wordNumber may match at such an entry, and they need
// that number.
func prefilterWhole(b []byte, base int, list []int32) []int32 {
	n := 0
	for _, entry := range list {
		list[n] = entry
		from := base + int(entry&^unsureMark) - markAt
		if uint(from) > uint(len(b)-nearSize) {
			n++
			continue
		}
		p := (*near)(b[from : from+nearSize])
		n += int(uint64(uint32(entry)>>31) | (1 ^ p.noNumberBefore(numberAt-1)))
	}
	return list[:n]
}

// prefilterNumbers removes entries whose number, with the bytes before and after it, cannot match
// any grammar. It clears unsureMark in the remaining entries.
func (f *fits) prefilterNumbers(b []byte, base int, list []int32) []int32 {
	n := 0
	for _, entry := range list {
		at := entry &^ unsureMark
		list[n] = at
		from := base + int(at) - markAt
		// numbers near an end of b stay, and numbers after "+", most of which are part of a frame
		if uint(from) > uint(len(b)-nearSize) || b[from+markAt] == '+' {
			n++
			continue
		}
		n += int(f.mayBe((*near)(b[from : from+nearSize])))
	}
	return list[:n]
}

// mayBe returns 1 if f.any may return true for p's number, and 0 if the bytes in p rule that out.
func (f *fits) mayBe(p *near) uint64 {
	blanks, back, before, further := p.word()
	unsure := p.unsure(back, before, further)
	set := f.direct[p[markAt]] & f.back[back] & f.beforeBack[before]
	set &^= f.shapes[twoBlanks] & (blanks>>1 - 1)
	low, high := binary.LittleEndian.Uint64(p[hexStart:]), binary.LittleEndian.Uint64(p[hexStart+8:])
	set &^= f.shapes[kernelHigh] & -isSet(low&0xffffffff|0x20202020^ffff)
	digits := hexPrefix(low)
	digits += hexPrefix(high) & -(digits >> 3)
	set &^= f.shapes[wordNumber] & -(p.noNumberBefore(numberAt-blanks) | isSet(uint64(digits)&7))
	next, then := p[(hexStart+digits)&(nearSize-1)], p[(hexStart+digits+1)&(nearSize-1)]
	return isSet(unsure | set&f.nearNext[next]&(f.nearThen[then]|f.lineEnd[next]))
}

// noNumberBefore returns 1 if the word before p[end] does not follow a number, 0 if it may.
func (p *near) noNumberBefore(end uint64) uint64 {
	const high, noBlank = 0x8080808080808080, 0x7f7f7f7f7f7f7f7f - ' '*0x0101010101010101
	word := binary.LittleEndian.Uint64(p[(end-8)%nearSize:])
	blanks := ^(word&^high + noBlank | word) & high // also finds control characters
	end -= uint64(bits.LeadingZeros64(blanks) / 8)
	return 1 &^ (isSet(uint64(p[(end-1)%nearSize])^' ') | uint64(classes[p[(end-2)%nearSize]]/afterNumber))
}
