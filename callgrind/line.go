package callgrind

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/symfilter/symfilter/internal/stacks"
)

// numbers reads a line of numbers: a position and costs.
func (r *recordReader) numbers(b []byte) error {
	pos, i, ok := r.position(b, 0)
	if !ok {
		r.bad(b)
		return nil
	}
	if r.columns == nil {
		if err := r.assume(); err != nil {
			return err
		}
	}
	r.body = true
	r.last = pos
	r.rec.codePosition = pos
	costs := r.costs
	clear(costs)
	some, good := false, false
	for column := 0; ; column++ {
		for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		if i == len(b) {
			break
		}
		start, isCost := i, true
		v, end := decimal(b, i)
		n := int64(v)
		if i = end; !isShort(b, start, end) {
			if n, i, isCost = number(b, start); !isCost {
				r.complain("number", "has %q, which is not a cost and counts as 0", word(b, start))
				r.pass()
			} else if _, part, _ := bytes.Cut(b[start:i], []byte(".")); len(bytes.Trim(part, "0")) > 0 {
				r.complain("fraction", "has the cost %q; the fraction is dropped", b[start:i])
			}
			r.checkSize(b[start:i])
		}
		if column >= len(r.columns) {
			r.complain("extra", "has more costs than the profile has events; the surplus costs are dropped")
			break
		}
		some = true
		good = good || isCost
		if c := r.columns[column]; c >= 0 {
			costs[c] = stacks.Plus(costs[c], n)
		}
	}
	if r.passed && !good && r.next == aCost {
		return nil // a line of a log that begins with a number, such as a time
	}
	r.rec.Costs = costs
	switch r.next {
	case aCall:
		r.next = aCost
		return r.give(callRecord)
	case aJump:
		r.next = aCost
		if err := r.give(jumpRecord); err != nil || !some {
			return err
		}
		// the format allows no costs after a jump's position, so they are the costs of the place
		// itself
		return r.give(costRecord)
	}
	return r.give(costRecord)
}

// shortest and longest are the least and the largest number of digits in a short decimal number.
// Such a number always fits into an int64.
const shortest, longest = 1, 18

// decimal parses the decimal digits from i, and returns the index after them. It is small enough to
// be inlined. Most numbers are short, and need no call of the slower function number: see isShort.
func decimal(b []byte, i int) (v uint64, end int) {
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		v = v*10 + uint64(b[i]-'0')
	}
	return v, i
}

// isShort reports whether decimal's digits from start to end are a whole word of at most
// longest digits.
func isShort(b []byte, start, end int) bool {
	return uint(end-start-shortest) <= longest-shortest && isWordEnd(b, end)
}

func isWordEnd(b []byte, i int) bool { return i == len(b) || b[i] == ' ' || b[i] == '\t' }

// number parses a cost that is not a short decimal number: hexadecimal, negative, long, a fraction,
// or "." for 0. A cost too large for an int64 becomes the largest int64.
func number(b []byte, i int) (n int64, end int, ok bool) {
	w := word(b, i)
	end = i + len(w)
	negative := false
	if w[0] == '-' || w[0] == '+' {
		negative = w[0] == '-'
		w = w[1:]
	}
	if len(w) == 1 && w[0] == '.' && !negative {
		return 0, end, true
	}
	v, used := digits(w)
	rest := w[used:]
	if used > 0 && len(rest) > 0 && rest[0] == '.' { // the fraction is dropped
		rest = rest[1:]
		for len(rest) > 0 && rest[0]-'0' < 10 {
			rest = rest[1:]
		}
	}
	if used == 0 || len(rest) > 0 {
		return 0, end, false
	}
	n = int64(min(v, math.MaxInt64))
	if negative {
		n = -n
	}
	return n, end, true
}

// checkSize reports a count that does not fit into an int64. The reader replaces such a count by
// the largest int64, negative for a negative count.
func (r *recordReader) checkSize(count []byte) {
	if len(count) < len("0x8000000000000000") { // shorter than any such number
		return
	}
	if v, _ := digits(bytes.TrimLeft(count, "+-")); v > math.MaxInt64 {
		read := int64(math.MaxInt64)
		if count[0] == '-' {
			read = -read
		}
		r.complain("large", "has the count %.40s, which is out of range and is read as %d", count, read)
	}
}

// word returns the bytes from i to the next blank.
func word(b []byte, i int) []byte {
	end := i
	for end < len(b) && b[end] != ' ' && b[end] != '\t' {
		end++
	}
	return b[i:end]
}

// digits parses a decimal or hexadecimal number, and returns the number of bytes used. A number
// that is too large becomes the largest uint64.
func digits(b []byte) (v uint64, used int) {
	base, first := uint64(10), 0
	if len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x' {
		base, first = 16, 2
	}
	for used = first; used < len(b); used++ {
		d := uint64(b[used] - '0')
		if base == 16 && b[used]|0x20-'a' < 6 {
			d = uint64(b[used]|0x20-'a') + 10
		} else if d >= 10 {
			break
		}
		high, low := bits.Mul64(v, base)
		next, carry := bits.Add64(low, d, 0)
		if v = next; high|carry != 0 {
			v = math.MaxUint64
		}
	}
	if used == first {
		return 0, 0
	}
	return v, used
}

// position parses the position that starts at index i.
func (r *recordReader) position(b []byte, i int) (pos codePosition, end int, ok bool) {
	for n := range r.positions {
		for n > 0 && i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		if i == len(b) {
			// some producers, such as Xdebug, write fewer numbers than "positions:" names
			return pos, i, n > 0
		}
		base := r.last.Line
		if n == r.addrIndex {
			base = r.last.Addr
		} else if n != r.lineIndex {
			base = 0
		}
		var v uint64
		switch c := b[i]; {
		case c-'0' < 10:
			var end int
			if v, end = decimal(b, i); !isShort(b, i, end) {
				var used int
				v, used = digits(b[i:])
				if end = i + used; used == 0 || !isWordEnd(b, end) {
					return pos, i, false
				}
			}
			i = end
		case c == '*' && isWordEnd(b, i+1):
			v = base
			i++
		case c == '+' || c == '-':
			i++
			d, end := decimal(b, i)
			if !isShort(b, i, end) {
				var used int
				d, used = digits(b[i:])
				if end = i + used; used == 0 || !isWordEnd(b, end) {
					return pos, i, false
				}
			}
			i = end
			v = base + d
			if c == '-' {
				v = base - d
				if d > base && n == r.lineIndex {
					r.complain("number", "has a negative line number; the line is treated as unknown")
					v = 0
				}
			} else if v < base && n == r.lineIndex {
				v = math.MaxUint64
			}
		case c == '?' && isWordEnd(b, i+1):
			i++
		default:
			return pos, i, false
		}
		if n == r.addrIndex {
			pos.Addr = v
		} else if n == r.lineIndex {
			pos.Line = v
		}
	}
	return pos, i, true
}

// call reads the value of "calls=": COUNT TARGET.
func (r *recordReader) call(b []byte) error {
	r.begin()
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	count, used := digits(b[i:])
	if used == 0 {
		r.complain("number", "has no number of calls")
	}
	r.rec.Count = int64(min(count, math.MaxInt64))
	r.checkSize(b[i : i+used])
	r.target(b, i+used)
	if r.calledOb || r.calledFile || r.calledFn { // otherwise the preceding call's callee remains
		if !r.calledOb {
			r.callee.Object = r.rec.Object
		}
		if !r.calledFile {
			r.callee.File = r.rec.Source
		}
		r.callee.Source = r.callee.File
		r.calledOb, r.calledFile, r.calledFn = false, false, false
	}
	to := r.rec.To.codePosition
	r.rec.To = r.callee
	r.rec.To.codePosition = to
	r.next = aCall
	return nil
}

func (r *recordReader) target(b []byte, i int) {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	r.rec.To.codePosition, _, _ = r.position(b, i)
}

// jump reads the value of a jump: "COUNT TARGET", or for a conditional jump "FOLLOWED/EXECUTED
// TARGET" or "EXECUTED FOLLOWED TARGET".
func (r *recordReader) jump(b []byte, conditional bool) error {
	r.begin()
	i := 0
	next := func() int64 {
		for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		n, used := digits(b[i:])
		r.checkSize(b[i : i+used])
		i += used
		return int64(min(n, math.MaxInt64))
	}
	r.rec.Count, r.rec.Executed, r.rec.Conditional = next(), 0, conditional
	if conditional {
		if i < len(b) && b[i] == '/' {
			i++
			r.rec.Executed = next()
		} else {
			r.rec.Executed, r.rec.Count = r.rec.Count, next()
		}
	}
	r.target(b, i)
	r.rec.To.Object, r.rec.To.File, r.rec.To.Function = r.rec.Object, r.rec.File, r.rec.Function
	r.rec.To.Source = r.rec.Source
	if r.jumpFile != 0 {
		r.rec.To.Source = r.jumpFile
	}
	if r.jumpFn != 0 {
		r.rec.To.Function = r.jumpFn
		if r.jumpFile != 0 {
			r.rec.To.File = r.jumpFile
		}
	}
	r.jumpFile, r.jumpFn = 0, 0
	r.next = aJump
	return nil
}
