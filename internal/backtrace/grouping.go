package backtrace

import (
	"bytes"
	"encoding/binary"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/lines"
)

// The first two constants bound a held backtrace. The rest of a longer backtrace is a Stack with
// Cut set. The sanitizers print at most 256 frames. The other constants bound the text between two
// frames.
const (
	maxStackRows  = 512
	maxStackText  = 128 << 10 // bytes
	maxBelowFrame = 64        // lines of local variables after a frame of gdb

	MaxBetween = 1 << 10 // bytes of a line between two frames
)

// MaxMessage bounds the message of a backtrace.
const MaxMessage = 200 // bytes

// maxTail is the size to which the text before a backtrace is cut. That text may contain the
// backtrace's message.
const maxTail = 4 << 10 // bytes

// maxHeldElements bounds the elements that a Grouping holds at a time. Further elements are treated
// as plain text.
const maxHeldElements = 4096

var newline = []byte{'\n'}

// A Grouping groups the lines of a log's backtraces, for a [filter.Printer]. It holds the lines of
// a backtrace until its end. The zero value is for a new log.
type Grouping struct {
	held  []Held // elements whose lines may not be printed yet
	lines int    // number of elements in held whose lines are not printed yet
	round uint32 // number of times that held was emptied
	stack Stack
	last  []byte // the beginning of the last line that has text and is not a frame
	tail  []byte // the lines since the last backtrace, at most the last 2*maxTail bytes
}

// A Held is an element that a Grouping keeps until the element's line is printed.
type Held struct {
	Answer filter.Resolved
	Values []filter.DictValue
}

// Hold keeps an element until its line is printed, and appends the bytes by which
// [Grouping.Element] finds it. At the limit of held elements, Hold returns dst unchanged.
func (g *Grouping) Hold(dst []byte, h *Held) []byte {
	if len(g.held) >= maxHeldElements {
		return dst
	}
	g.held = append(g.held, *h)
	g.lines++
	dst = binary.LittleEndian.AppendUint32(dst, g.round)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(g.held)-1))
}

// Element returns the element for the bytes that [Grouping.Hold] appended. It returns nil if Hold
// appended nothing, or if [Grouping.Release] has forgotten the element.
func (g *Grouping) Element(made []byte) *Held {
	if len(made) < 8 || binary.LittleEndian.Uint32(made) != g.round {
		return nil
	}
	if i := binary.LittleEndian.Uint32(made[4:]); int(i) < len(g.held) {
		return &g.held[i]
	}
	return nil
}

// elementAt returns the held element at an offset in the text of a line. If the line has only one
// element, elementAt returns it for any offset. It returns nil if the element is not held.
func (g *Grouping) elementAt(l *filter.Line, at int) *Held {
	for i := range l.Elements {
		if e := &l.Elements[i]; e.Start <= at && (at < e.End || at == e.Start) || len(l.Elements) == 1 {
			return g.Element(e.Appended)
		}
	}
	return nil
}

// Release records that a line with these elements was printed. It forgets all elements if no other
// line has any, or at the limit of held elements.
func (g *Grouping) Release(elements []filter.LineElement) {
	for i := range elements {
		if len(elements[i].Appended) > 0 {
			g.lines--
		}
	}
	if g.lines <= 0 || len(g.held) >= maxHeldElements {
		clear(g.held)
		g.held, g.lines = g.held[:0], 0
		g.round++
	}
}

// IsOpen reports whether lines of a backtrace are held.
func (g *Grouping) IsOpen() bool { return g.stack.isOpen() }

// AddFrames adds a line with frames to the open backtrace. If the line does not belong to that
// backtrace, or none is open, AddFrames begins a new one. It first calls end for an open backtrace;
// end must call End.
func (g *Grouping) AddFrames(l *filter.Line, end func()) {
	s := &g.stack
	var first *filter.Resolved
	if h := g.elementAt(l, l.Frames[0].At); h != nil {
		first = &h.Answer
	}
	full := len(s.Rows) >= maxStackRows || len(s.text) >= maxStackText
	if s.isOpen() && (full || !s.continues(l, first)) {
		belongs := full && s.continues(l, first)
		end()
		s.Cut = belongs
	}
	begins := !s.isOpen()
	if begins {
		s.process = l.Process
		s.Message = append(s.Message[:0], g.last...)
	}
	s.waiting = 0
	if first != nil {
		s.number, s.dialect = first.Frame, first.Dialect
	} else if s.number != filter.NoNumber && !begins {
		s.number++
	}
	marks := l.Frames
	from := -1 // index in s.Answers of the last element
	var of *Held
	row := Row{Frame: filter.NoFrame, Answer: filter.NoFrame}
	for at := 0; ; {
		to := bytes.IndexByte(l.Text[at:], '\n')
		ended := len(l.EOL) > 0
		if to >= 0 {
			to += at
			ended = true
		} else {
			to = len(l.Text)
		}
		row.More = row.Answer >= 0
		for len(marks) > 0 && marks[0].At <= to {
			row = Row{Frame: filter.NoFrame, Answer: filter.NoFrame, Named: marks[0].Frame < 0}
			if h := g.elementAt(l, marks[0].At); h != nil && marks[0].Frame >= 0 {
				if h != of {
					of, from = h, len(s.Answers)
					s.Answers = append(s.Answers, h.Answer)
				}
				row.Frame, row.Answer = marks[0].Frame, from
			}
			marks = marks[1:]
		}
		row.Ended = ended
		s.add(l.Text[at:to], row)
		if to == len(l.Text) {
			break
		}
		at = to + 1
	}
}

// AddNamed adds a line with a named frame of gdb to the backtrace if the line has the next frame
// number. If the number is 0, AddNamed calls end, and begins a new backtrace with the line. It
// reports whether it has added the line.
func (g *Grouping) AddNamed(text []byte, process string, ended bool, end func()) bool {
	if len(text) == 0 || text[0] != '#' || len(text) > MaxBetween || bytes.IndexByte(text, '\n') >= 0 {
		return false
	}
	s := &g.stack
	number, _, ok := gdbNumber(text)
	next := s.isOpen() && s.dialect == gdbDialect && s.process == process && number == s.number+1 && len(s.Rows) < maxStackRows && len(s.text) < maxStackText
	if !ok || !next && number != 0 {
		return false
	}
	if _, ok := gdbFrame(text); !ok {
		return false
	}
	if !next {
		end()
		s.dialect, s.process = gdbDialect, process
		s.Message = append(s.Message[:0], g.last...)
	}
	s.number, s.waiting = number, 0
	s.add(text, Row{Ended: ended, Named: true, Frame: filter.NoFrame, Answer: filter.NoFrame})
	return true
}

// AddBetween adds a line to the open backtrace if it may be between two frames, and reports whether
// it did.
func (g *Grouping) AddBetween(text []byte, ended bool) bool {
	s := &g.stack
	if !s.mayAddBetween(text) {
		return false
	}
	s.waiting++
	s.add(text, Row{Ended: ended, Frame: filter.NoFrame, Answer: filter.NoFrame})
	return true
}

// End ends the open backtrace, if any. It calls stack with the backtrace, and line with each later
// line that was held because another frame could follow.
func (g *Grouping) End(stack func(*Stack), line func(text []byte, ended bool)) {
	s := &g.stack
	if !s.isOpen() {
		return
	}
	all, n := s.Rows, len(s.Rows)-s.waiting
	s.Rows = all[:n]
	stack(s)
	s.Rows = all
	for i := n; i < len(all); i++ {
		line(s.Text(i), all[i].Ended)
	}
	clear(s.Answers)
	*s = Stack{text: s.text[:0], Rows: all[:0], Answers: s.Answers[:0], Message: s.Message}
	if cap(s.text) > 2*maxStackText {
		s.text = nil
	}
}

// Restart forgets all lines that may belong to the next backtrace. It is called when another log
// begins.
func (g *Grouping) Restart() { g.last, g.tail = g.last[:0], g.tail[:0] }

// Remember keeps a line, which may be the message of the next backtrace.
func (g *Grouping) Remember(text []byte) {
	g.KeepTail(text)
	g.KeepTail(newline)
	if len(text) > MaxMessage {
		text = text[:MaxMessage]
		n := access.UnfinishedSGR(text)
		if n == 0 {
			n = escape.CutRune(text)
		}
		text = text[:len(text)-n]
	}
	if len(text) > 0 {
		g.last = append(g.last[:0], text...)
	}
}

// RememberAll is Remember for several lines. It ignores empty lines at the end.
func (g *Grouping) RememberAll(whole []byte) {
	for rest := whole; len(rest) > 0; {
		at := bytes.LastIndexByte(rest[:len(rest)-1], '\n') + 1
		if text, _ := lines.CutEnd(rest[at:]); len(text) > 0 {
			g.KeepTail(rest[:at])
			g.Remember(text)
			return
		}
		rest = rest[:at]
	}
}

// Tail returns the lines since the last backtrace, up to a bound. It is valid until another line is
// kept.
func (g *Grouping) Tail() []byte { return g.tail }

// DropTail forgets the lines since the last backtrace.
func (g *Grouping) DropTail() { g.tail = g.tail[:0] }

// KeepTail adds lines to the tail. Most calls only append: the tail is cut at twice the necessary
// length.
func (g *Grouping) KeepTail(lines []byte) {
	if n := len(lines); n > maxTail {
		g.tail = g.tail[:0]
		lines = lines[n-maxTail:]
		lines = lines[bytes.IndexByte(lines, '\n')+1:]
	}
	if len(g.tail)+len(lines) > 2*maxTail {
		n := len(g.tail) + len(lines) - maxTail
		if i := bytes.IndexByte(g.tail[n:], '\n'); i >= 0 {
			n += i + 1
		} else {
			n = len(g.tail)
		}
		g.tail = g.tail[:copy(g.tail, g.tail[n:])]
	}
	g.tail = append(g.tail, lines...)
}
