package marks

import (
	"bytes"
	"math/bits"
	"sync"

	"github.com/symfilter/symfilter/internal/dialect"
)

// markTables are the operands of listMarks: four tables, a mask of four bits, and '\n'. Each table
// maps four bits of the three bytes at an offset to the buckets that have a mark with these bits.
// An offset is a candidate if all four tables give it a common bucket.
type markTables [6][16]byte

const (
	markStep  = 64   // offsets whose candidates are listed together
	leastSpan = 512  // bytes whose candidates are listed first, because the first mark is often near
	mostSpan  = 4096 // bytes whose candidates are listed at a time
)

// A markList has the candidates for marks in up to mostSpan bytes. Each entry is a step with
// candidates: its offset, and the candidates as bits.
type markList [mostSpan / markStep]dialect.Step

// A Search finds the marks of b, one after another.
//
// Like [FindOpen] it reads every byte of every log. Logs with many numbers have a candidate in
// every second line, and almost none is a mark. A Search therefore lists candidates first, and
// checks them afterwards.
type Search struct {
	b      []byte
	tables *markTables
	sets   *dialect.MarkBytes
	reader *dialect.Reader // rejects marks at which no dialect matches; nil if all are found

	list         markList // marks of b[from:to]; their offsets are relative to from
	first, after int      // list[first:after] has not been searched yet
	from, to     int
	lines        int // line ends in b[from:to]
	span         int
}

// Next returns the offset of the first mark at or after the given offset, or len(b), and the number
// of line ends in between. The offset must not decrease from call to call.
func (s *Search) Next(at int) (mark, lines int) {
	counted := at // the line ends of b[at:counted] are in lines
	for {
		for ; s.first < s.after; s.first++ {
			step := &s.list[s.first]
			from := s.from + step.At
			if at > from {
				if at-from >= markStep {
					continue
				}
				step.Marks &= ^uint64(0) << (at - from)
			}
			for ; step.Marks != 0; step.Marks &= step.Marks - 1 {
				i := from + bits.TrailingZeros64(step.Marks)
				if s.is(i) {
					if i > counted {
						lines += bytes.Count(s.b[counted:i], newline)
					}
					return i, lines
				}
			}
		}
		switch {
		case counted == s.from:
			lines += s.lines
			counted = s.to
		case counted < s.to:
			lines += bytes.Count(s.b[counted:s.to], newline)
			counted = s.to
		}
		if !s.more(counted) {
			break
		}
	}
	for mark = counted; mark+2 < len(s.b); mark++ {
		if s.is(mark) {
			return mark, lines + bytes.Count(s.b[counted:mark], newline)
		}
	}
	return len(s.b), lines + bytes.Count(s.b[counted:], newline)
}

// more lists the candidates of the next span of b, from the given offset. It returns false if it
// has searched nothing: too few bytes are left, or the processor has no AVX2.
func (s *Search) more(at int) bool {
	n, lines, entries := listMarks(s.b[at:min(len(s.b), at+s.span+2)], s.tables, &s.list)
	if s.reader != nil {
		entries = len(s.reader.Prefilter(s.b, at, s.sets, s.list[:entries]))
	}
	s.from, s.to, s.lines, s.first, s.after = at, at+n, lines, 0, entries
	s.span = min(2*s.span, mostSpan)
	return n > 0
}

// Search.is reports whether a mark is at the given offset, which is at least three bytes before the
// end.
func (s *Search) is(at int) bool {
	return s.sets.Begin(s.b[at:at+3:at+3]) && (s.reader == nil || s.reader.MayMatch(s.b, at))
}

// NewSearch returns a Search in b for the marks at which r may match, or for all marks if r is nil.
func NewSearch(b []byte, r *dialect.Reader) Search {
	return ordinarySet().Search(b, r)
}

// NextOf is Next for the offset of a line's beginning. There, "0x" is also a mark. If Next finds
// the mark "\n0x", NextOf returns the offset of the '0', since the mark belongs to the line after
// '\n'.
func (s *Search) NextOf(from int) (at, lines int) {
	if b := s.b; from+1 < len(b) && b[from] == '0' && b[from+1] == 'x' && (s.reader == nil || s.reader.MayMatch(b, from)) {
		return from, 0
	}
	if at, lines = s.Next(from); at < len(s.b) && s.b[at] == '\n' {
		return at + 1, lines + 1
	}
	return at, lines
}

// Find returns the offset of the first mark in b, or len(b), and the number of line ends before it.
// b must begin with a line.
func Find(b []byte) (at, lines int) {
	s := NewSearch(b, nil)
	return s.NextOf(0)
}

// SearchCounters returns a Search in b for the names of the registers RIP and EIP.
func SearchCounters(b []byte) Search { return counterSet().Search(b, nil) }

// IsZero reports whether s is the zero Search.
func (s *Search) IsZero() bool { return s.b == nil }

// FindEscaped is Find for lines whose text is in strings of JSON.
func FindEscaped(b []byte) (at, lines int) {
	s := escapedSet().Search(b, nil)
	return s.Next(0)
}

// A Set holds the tables that a Search needs for a set of marks. Make a Set when it is first
// needed: making the three sets of this package took 1.5 % of the process's start-up time.
type Set struct {
	tables *markTables
	sets   *dialect.MarkBytes
}

var (
	ordinarySet = sync.OnceValue(func() Set { return NewSet(marks) })
	escapedSet  = sync.OnceValue(func() Set { return NewSet(escapedMarks()) })
	counterSet  = sync.OnceValue(func() Set { return NewSet(counterMarks) })
)

// NewSet returns the Set of marks.
func NewSet(marks []Mark) Set {
	sets := new(dialect.MarkBytes)
	for _, m := range marks {
		sets.Add(m.First, m.Rest)
	}
	return Set{tablesOf(marks), sets}
}

// Search returns a Search in b for the marks of s.
func (s Set) Search(b []byte, r *dialect.Reader) Search {
	return Search{b: b, tables: s.tables, sets: s.sets, reader: r, span: leastSpan}
}
