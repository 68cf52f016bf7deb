package dialect

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// A shape is a condition on the text before a grammar's anchor, or on the anchor's number. A
// grammar has a shape if its byte sets alone would accept too many other lines.
type shape uint8

const (
	anyShape   shape = iota
	hashNumber       // "#N" and blanks
	wordNumber       // N, blanks and a word; the anchor's number has eight or 16 digits
	twoBlanks        // at least two blanks
	kernelHigh       // the anchor's number begins with ffff, like addresses of 64-bit kernels
	longNumber       // the number of the anchor has eight or 16 digits
	freeNumber       // a decimal number ends at the byte of back, or one byte before: see endsFree
	shapes
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// tables hold the grammars of a Reader's dialects, and lookup tables that reject most anchors
// before a grammar is tried.
type tables struct {
	of      [anchors]fits
	lines   []grammar // the grammars of anchorLine
	headers []header
}

// fits holds the grammars of an anchor. The byte tables direct, beforeBack, back, next and then
// each cover a position near the anchor. For each byte, a table has the set of kinds that accept
// the byte at its position. Bit i of a set is for kinds[i].
type fits struct {
	grammars                             []grammar // in the order in which they are tried
	kinds                                []kind    // at most maxKinds
	direct, beforeBack, back, next, then [256]uint64
	shapes                               [shapes]uint64 // the kinds of each shape
	length                               int            // of the anchor
	digits                               int            // digitsAfter of the anchor

	// Tables for Prefilter. nearNext and nearThen are like next and then, but for numbers of at
	// most 16 digits. lineEnd has all kinds for bytes after a number that make the second byte
	// irrelevant. words has a bit for each pair of bytes that may precede a blank and a frame's
	// number; the pair's first byte is the low byte of its index.
	nearNext, nearThen, lineEnd [256]uint64
	words                       [1 << 16 / 64]uint64
}

// A kind is a set of grammars that accept the same bytes around the anchor.
type kind struct {
	first *grammar   // one of the grammars
	of    grammarSet // all of them
}

// A grammarSet is a set of grammars of an anchor: bit i%64 of element i/64 is the grammar i.
type grammarSet [maxGrammars / 64]uint64

// Limits for an anchor.
const (
	maxKinds    = 64 // a set of kinds is one word, so that anchors in a log are rejected fast
	maxGrammars = 128
)

func (f *fits) add(g *grammar) {
	i := slices.IndexFunc(f.kinds, func(k kind) bool { return k.first.acceptsAs(g) })
	if i < 0 {
		i = len(f.kinds)
		f.kinds = append(f.kinds, kind{first: g})
		bit := uint64(1) << i
		setBytes(&f.direct, g.direct, bit)
		setBytes(&f.beforeBack, g.before, bit)
		setBytes(&f.back, g.back, bit)
		setBytes(&f.next, g.next, bit)
		setBytes(&f.then, g.then, bit)
		f.shapes[g.shape] |= bit
	}
	n := len(f.grammars)
	f.grammars = append(f.grammars, *g)
	f.kinds[i].of[n/64] |= 1 << (n % 64)
}

func (g *grammar) acceptsAs(h *grammar) bool {
	return g.direct == h.direct && g.back == h.back && g.before == h.before && g.next == h.next &&
		g.then == h.then && g.shape == h.shape && slices.Equal(g.words, h.words)
}

func (f *fits) grammarsOf(set uint64) (all grammarSet) {
	for ; set != 0; set &= set - 1 {
		for i, of := range f.kinds[bits.TrailingZeros64(set)].of {
			all[i] |= of
		}
	}
	return all
}

// allTables returns the tables of all dialects except dialects on demand. Readers share these
// tables.
var allTables = sync.OnceValue(func() *tables { return tablesOf(nil) })

// tablesOf returns the tables of the dialects with the given names. A nil list of names selects all
// dialects except dialects on demand.
func tablesOf(only []string) *tables {
	t := &tables{headers: allHeaders()}
	for i := range t.headers {
		h := &t.headers[i]
		h.bytes, h.plain, h.has = []byte(h.text), []byte(plainPart(h.text)), bytesOf([]byte(h.text))
	}
	for a := range t.of {
		t.of[a].length, t.of[a].digits = len(anchorText[a]), digitsAfter[a]
	}
	for _, g := range allGrammars() {
		if only != nil && !slices.Contains(only, g.dialect.Name) || only == nil && g.dialect.OnDemand {
			continue
		}
		if g.anchor == anchorLine {
			t.lines = append(t.lines, g)
			continue
		}
		t.of[g.anchor].add(&g)
	}
	t.of[anchor0x].setNear()
	return t
}

// setBytes sets bit in table for each byte in set, in the notation of [grammar].
func setBytes(table *[256]uint64, set string, bit uint64) {
	if set == "" {
		for c := range table {
			table[c] |= bit
		}
	}
	for _, c := range []byte(set) {
		table[c] |= bit
	}
	if strings.Contains(set, "0") {
		for c := '0'; c <= '9'; c++ {
			table[c] |= bit
		}
	}
	if strings.Contains(set, "\n") { // lines in a block may end with "\r\n"
		table['\r'] |= bit
	}
}

// load makes the tables of r on the first call.
func (r *Reader) load() {
	if r.tables != nil {
		return
	}
	if r.tables = allTables(); r.only != nil {
		r.tables = tablesOf(r.only)
	}
}

// MayMatch reports whether a frame, or an element of markup, may be at the mark at offset mark of
// b. The mark is "\n0x", or one of the marks described at [Reader.LineAt]. b is one or more whole
// lines. If MayMatch returns false for all marks of a line, r need not read the line unless
// [Reader.Wants] returns true.
func (r *Reader) MayMatch(b []byte, mark int) bool {
	if r.tables == nil {
		r.load()
	}
	// nearly all marks are "0x" with the byte before
	if at := mark + 1; b[mark] <= '[' && at+1 < len(b) && b[at] == '0' && b[at+1] == 'x' {
		return r.of[anchor0x].any(b, at)
	}
	if b[mark] == '{' {
		return true
	}
	a, at, ok := anchorOf(b, mark)
	return ok && r.of[a].any(b, at)
}

// at returns the kinds of grammars that may have a frame at the anchor with the given offset. b may
// have lines before and after the anchor's line.
func (f *fits) at(b []byte, at int) (set uint64) {
	set, blanks := f.bytes(b, at)
	if s := f.shapes[hashNumber]; set&s != 0 && !hashBefore(b, blanks) {
		set &^= s
	}
	if s := f.shapes[wordNumber]; set&s != 0 && !longAfterWord(b, blanks, at) {
		set &^= s
	}
	if s := f.shapes[twoBlanks]; set&s != 0 && at-blanks < 2 {
		set &^= s
	}
	if s := f.shapes[kernelHigh]; set&s != 0 && !isHigh(b, at) {
		set &^= s
	}
	if s := f.shapes[longNumber]; set&s != 0 && !isLong(b, at) {
		set &^= s
	}
	if s := f.shapes[freeNumber]; set&s != 0 && !endsFree(b, blanks) {
		set &^= s
	}
	return set
}

// any reports whether f.at returns a kind, or might return one if the line had no colours. It
// examines few bytes, because it is called for nearly each number in a log.
func (f *fits) any(b []byte, at int) bool {
	set, blanks := f.before(b, at)
	if at-blanks < 2 {
		set &^= f.shapes[twoBlanks]
	}
	if s := f.shapes[wordNumber]; set&s != 0 && (!mayBeWhole(b, at) || !numberedWord(b, blanks)) {
		set &^= s
	}
	if s := f.shapes[kernelHigh]; set&s != 0 && !isHigh(b, at) {
		set &^= s
	}
	if set != 0 {
		set = f.after(b, at, set)
	}
	return set != 0 &&
		(set&(f.shapes[anyShape]|f.shapes[twoBlanks]|f.shapes[kernelHigh]) != 0 ||
			set&f.shapes[hashNumber] != 0 && hashBefore(b, blanks) ||
			set&f.shapes[wordNumber] != 0 && longAfterWord(b, blanks, at) ||
			set&f.shapes[longNumber] != 0 && isLong(b, at) ||
			set&f.shapes[freeNumber] != 0 && endsFree(b, blanks)) ||
		blanks > 2 && mayEndColor[b[blanks-1]]|mayEndColor[b[blanks-2]] != 0 && (colorEnds(b, blanks) || colorEnds(b, blanks-1))
}

// mayEnd is 1 for bytes that may follow a wordNumber's number. noLetter is 1 for all bytes except
// letters.
var mayEnd, noLetter = [256]uint8{' ': 1, '\t': 1, '\r': 1, '\n': 1, esc: 1}, func() (set [256]uint8) {
	for c := range set {
		if !isLetter(byte(c)) {
			set[c] = 1
		}
	}
	return set
}()

// bytes returns the kinds that accept the bytes around the anchor, without checking shapes. blanks
// is the start of the blanks before the anchor.
func (f *fits) bytes(b []byte, at int) (set uint64, blanks int) {
	if set, blanks = f.before(b, at); set != 0 {
		set = f.after(b, at, set)
	}
	return set, blanks
}

// before returns the kinds that accept the bytes before the anchor, and the start of the blanks
// before it.
func (f *fits) before(b []byte, at int) (set uint64, blanks int) {
	direct, back, before := byte('\n'), byte('\n'), byte('\n')
	if at > 0 {
		direct = b[at-1]
	}
	blanks = at
	for blanks > 0 && (b[blanks-1] == ' ' || b[blanks-1] == '\t') {
		blanks--
	}
	if blanks > 0 {
		if back = b[blanks-1]; back != '\n' && blanks > 1 {
			before = b[blanks-2]
		}
	}
	return f.direct[direct] & f.back[back] & f.beforeBack[before], blanks
}

// after returns the kinds in set that accept the bytes after the anchor.
func (f *fits) after(b []byte, at int, set uint64) uint64 {
	end := at + f.length
	if f.digits > 0 {
		end = hexDigits(b, min(at+f.digits, len(b)))
	}
	next, then := byte('\n'), byte('\n')
	if end < len(b) {
		next = b[end]
	}
	if next == esc { // the byte after the colour is not known
		return set
	}
	if set &= f.next[next]; set == 0 {
		return 0
	}
	if next != '\n' {
		if end = blanksAfter(b, end+1); end < len(b) {
			then = b[end]
		}
	}
	if then == esc {
		return set
	}
	return set & f.then[then]
}

// ffff is the text "ffff" as a little-endian number.
const ffff = 'f' | 'f'<<8 | 'f'<<16 | 'f'<<24

// isHigh reports whether the prefixed number at the given offset begins with ffff.
func isHigh(b []byte, at int) bool {
	at += len("0x")
	return at+4 <= len(b) && binary.LittleEndian.Uint32(b[at:])|0x20202020 == ffff
}

// hashBefore reports whether b[:end] ends with "#" and a number.
func hashBefore(b []byte, end int) bool {
	at := digitsBefore(b, end)
	return at > 0 && at < end && b[at-1] == '#'
}

// longAfterWord reports whether the number at the given offset has eight or 16 digits, and b[:end]
// ends with a number and a word.
func longAfterWord(b []byte, end, at int) bool {
	return isLong(b, at) && numberedWord(b, end)
}

// isLong reports whether the prefixed number at the given offset has eight or 16 digits.
func isLong(b []byte, at int) bool {
	digits := hexDigits(b, at+len("0x")) - at - len("0x")
	return digits == 8 || digits == 16
}

// mayBeWhole reports whether the prefixed number at the given offset may have eight or 16 digits
// before a blank or line end. It examines only the byte after eight digits and the byte after 16.
func mayBeWhole(b []byte, at int) bool {
	for _, end := range [...]int{at + len("0x12345678"), at + len("0x0123456789abcdef")} {
		if end >= len(b) {
			return true
		}
		if mayEnd[b[end]] != 0 {
			return true
		}
	}
	return false
}

// numberedWord reports whether b[:end] ends with a number, blanks and a word.
func numberedWord(b []byte, end int) bool {
	at := end
	for at > 0 && b[at-1] != ' ' && b[at-1] != '\t' && b[at-1] != '\n' {
		at--
	}
	digits := blanksBefore(b, at)
	if digits == at || digits == 0 || !isDigit(b[digits-1]) {
		return false
	}
	return standsFree(b, digitsBefore(b, digits))
}

// endsFree reports whether neither a letter nor an underscore precedes the decimal digits at the
// end of b[:end]. If the last byte of b[:end] is not a digit, endsFree skips this byte.
func endsFree(b []byte, end int) bool {
	if end > 0 && !isDigit(b[end-1]) {
		end--
	}
	return standsFree(b, digitsBefore(b, end))
}

// digitsBefore returns the start of the decimal digits at the end of b[:end].
func digitsBefore(b []byte, end int) (start int) {
	for end > 0 && isDigit(b[end-1]) {
		end--
	}
	return end
}
