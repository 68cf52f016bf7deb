package filter

import (
	"bytes"
	"encoding/binary"
)

// The bounds of a backtrace that is held, and of a line between two of its frames. The sanitizers
// print at most 256 frames; the rest of a longer one is not counted as a backtrace of its own.
const (
	maxStackRows  = 512
	maxStackText  = 128 << 10 // bytes
	maxBetween    = 1 << 10   // bytes
	maxBelowFrame = 64        // lines of local variables
)

// A grouping groups the lines of a log's backtraces, for Printers. Lines of a backtrace are held
// until it ends.
type grouping struct {
	held  []heldElement // elements of lines that are not printed yet
	lines int           // number of held, whose lines are not printed yet
	round uint32        // number of times that held was emptied
	stack openStack
	last  []byte // the beginning of the last line that is not a frame
	tail  []byte // the lines since the last backtrace, at most the last 2*maxTail bytes
}

// maxTail bounds the lines before a backtrace in which its message is searched.
const maxTail = 4 << 10 // bytes

// maxHeldElements bounds the elements of a line that a grouping holds. The others are text.
const maxHeldElements = 4096

// An openStack is the backtrace whose lines are held.
type openStack struct {
	text    []byte
	rows    []stackRow
	answers []Resolved
	process string // key of its process

	number  uint64 // of the last frame
	dialect string // of the last frame
	waiting int    // rows at the end that are lines after a frame: they belong to the stack if the next frame follows
	cut     bool   // the stack is the rest of one that was too long
	message []byte // the line before it
}

// A stackRow is a line of a backtrace.
type stackRow struct {
	end    int // of its text
	ended  bool
	more   bool // the line belongs to the frame of the row before
	named  bool // the frame was symbolized when it was logged
	frame  int  // index in the frames of its answer; NoFrame without an answer
	answer int  // index in answers; NoFrame without an answer
}

func (s *openStack) open() bool { return len(s.rows) > 0 }

func (s *openStack) add(text []byte, r stackRow) {
	s.text = append(s.text, text...)
	r.end = len(s.text)
	s.rows = append(s.rows, r)
}

// mayAddBetween reports whether a line may be between two frames of the stack: one line, but those
// that gdb prints below a frame with bt full.
func (s *openStack) mayAddBetween(text []byte) bool {
	most := 1
	if s.dialect == gdbDialect {
		most = maxBelowFrame
	}
	return s.open() && s.waiting < most && len(text) <= maxBetween
}

// addBetween adds a line that may be between two frames.
func (s *openStack) addBetween(text []byte, ended bool) {
	s.waiting++
	s.add(text, stackRow{ended: ended, frame: NoFrame, answer: NoFrame})
}

// continues reports whether a line with a frame of this number belongs to the stack.
func (s *openStack) continues(l *Line, r *Resolved) bool {
	switch {
	case l.Process != s.process:
		return false
	case r == nil: // symbolized when it was logged
		return s.waiting == 0
	case r.Dialect != s.dialect && s.dialect != "":
		return false
	case s.number == NoNumber || r.Frame == NoNumber:
		return s.number == r.Frame || s.waiting == 0
	case s.waiting > 0:
		return r.Frame == s.number+1
	}
	return r.Frame > s.number
}

// addFrames adds a line with frames to the stack, or begins one with it. It calls end before a new
// one begins.
func (g *grouping) addFrames(l *Line, end func()) {
	s := &g.stack
	var first *Resolved
	if h := g.elementAt(l, l.Frames[0].At); h != nil {
		first = &h.answer
	}
	full := len(s.rows) >= maxStackRows || len(s.text) >= maxStackText
	if s.open() && (full || !s.continues(l, first)) {
		belongs := full && s.continues(l, first)
		end()
		s.cut = belongs
	}
	begins := !s.open()
	if begins {
		s.process = l.Process
		s.message = append(s.message[:0], g.last...)
	}
	s.waiting = 0
	if first != nil {
		s.number, s.dialect = first.Frame, first.Dialect
	} else if s.number != NoNumber && !begins {
		s.number++
	}
	marks := l.Frames
	from := -1 // index in s.answers of the last element
	var of *heldElement
	row := stackRow{frame: NoFrame, answer: NoFrame}
	for at := 0; ; {
		to := bytes.IndexByte(l.Text[at:], '\n')
		ended := len(l.EOL) > 0
		if to >= 0 {
			to += at
			ended = true
		} else {
			to = len(l.Text)
		}
		row.more = row.answer >= 0
		for len(marks) > 0 && marks[0].At <= to {
			row = stackRow{frame: NoFrame, answer: NoFrame, named: marks[0].Frame < 0}
			if h := g.elementAt(l, marks[0].At); h != nil && marks[0].Frame >= 0 {
				if h != of {
					of, from = h, len(s.answers)
					s.answers = append(s.answers, h.answer)
				}
				row.frame, row.answer = marks[0].Frame, from
			}
			marks = marks[1:]
		}
		row.ended = ended
		s.add(l.Text[at:to], row)
		if to == len(l.Text) {
			break
		}
		at = to + 1
	}
}

// elementAt returns the held element around an offset in the text of a line, or nil.
func (g *grouping) elementAt(l *Line, at int) *heldElement {
	for i := range l.Elements {
		if e := &l.Elements[i]; e.Start <= at && (at < e.End || at == e.Start) || len(l.Elements) == 1 {
			return g.element(e.Made)
		}
	}
	return nil
}

// single reports whether the stack is the line of one frame without a number, not a backtrace.
func (s *openStack) single() bool {
	return len(s.answers) == 1 && s.answers[0].Frame == NoNumber && s.rows[0].answer == 0 && s.rows[len(s.rows)-1].answer == 0
}

// A heldElement is an element with what a page shows of it.
type heldElement struct {
	answer Resolved
	values []DictValue
}

// element returns the held element that AppendElement has made, or nil.
func (g *grouping) element(made []byte) *heldElement {
	if len(made) < 8 || binary.LittleEndian.Uint32(made) != g.round {
		return nil
	}
	if i := binary.LittleEndian.Uint32(made[4:]); int(i) < len(g.held) {
		return &g.held[i]
	}
	return nil
}

// hold keeps an element until its line is printed, and appends its index in held.
func (g *grouping) hold(dst []byte, h heldElement) []byte {
	g.held = append(g.held, h)
	g.lines++
	dst = binary.LittleEndian.AppendUint32(dst, g.round)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(g.held)-1))
}

// isSummary reports whether text is the last line of a sanitizer's report, which repeats a frame.
func isSummary(text []byte) bool {
	return bytes.HasPrefix(text, []byte("SUMMARY: "))
}

// release forgets the elements of a line that was printed.
func (g *grouping) release(elements []LineElement) {
	for i := range elements {
		if len(elements[i].Made) > 0 {
			g.lines--
		}
	}
	if g.lines <= 0 || len(g.held) >= maxHeldElements {
		clear(g.held)
		g.held, g.lines = g.held[:0], 0
		g.round++
	}
}

// remember keeps a line, which may be the message of a backtrace.
func (g *grouping) remember(text []byte) {
	g.keepTail(text)
	g.keepTail(newline)
	if len(text) > maxMessage {
		text = text[:maxMessage-unfinishedText(text[:maxMessage])]
	}
	if len(text) > 0 {
		g.last = append(g.last[:0], text...)
	}
}

// rememberAll is remember for whole lines.
func (g *grouping) rememberAll(lines []byte) {
	for rest := lines; len(rest) > 0; {
		at := bytes.LastIndexByte(rest[:len(rest)-1], '\n') + 1
		if text, _ := splitLine(rest[at:]); len(text) > 0 {
			g.keepTail(rest[:at])
			g.remember(text)
			return
		}
		rest = rest[:at]
	}
}

// maxMessage bounds the message of a backtrace.
const maxMessage = 200 // bytes

// keepTail adds lines to the tail. Most lines are only appended: it is cut when it is twice as long
// as it has to be.
func (g *grouping) keepTail(lines []byte) {
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
