package filter

import (
	"bytes"
	"encoding/binary"

	"github.com/symfilter/symfilter/internal/html"
)

// The bounds of a backtrace that is held, and of a line between two of its frames. The sanitizers
// print at most 256 frames; the rest of a longer one is not counted as a backtrace of its own.
const (
	maxStackRows = 512
	maxStackText = 128 << 10 // bytes
	maxBetween   = 1 << 10   // bytes
)

// An openStack is the backtrace whose lines are held.
type openStack struct {
	text    []byte
	rows    []stackRow
	answers []Resolved
	process string // key of its process

	number  uint64 // of the last frame
	dialect string // of the last frame
	waiting bool   // the last row is a line after a frame: it belongs to the stack if a frame follows
	cut     bool   // the stack is the rest of one that was too long
	message []byte // the line before it
}

// A stackRow is a line of a backtrace.
type stackRow struct {
	end    int // of its text
	ended  bool
	more   bool // the line belongs to the frame of the row before
	frame  int  // index in the frames of its answer; NoFrame without an answer
	answer int  // index in answers; NoFrame without an answer
}

func (s *openStack) open() bool { return len(s.rows) > 0 }

func (s *openStack) add(text []byte, r stackRow) {
	s.text = append(s.text, text...)
	r.end = len(s.text)
	s.rows = append(s.rows, r)
}

// addBetween adds a line that may be between two frames.
func (s *openStack) addBetween(text []byte, ended bool) {
	s.waiting = true
	s.add(text, stackRow{ended: ended, frame: NoFrame, answer: NoFrame})
}

// continues reports whether a line with a frame of this number belongs to the stack.
func (s *openStack) continues(l *Line, r *Resolved) bool {
	switch {
	case l.Process != s.process:
		return false
	case r == nil: // symbolized when it was logged
		return !s.waiting
	case r.Dialect != s.dialect && s.dialect != "":
		return false
	case s.number == NoNumber || r.Frame == NoNumber:
		return s.number == r.Frame || !s.waiting
	case s.waiting:
		return r.Frame == s.number+1
	}
	return r.Frame > s.number
}

// frames adds a line with frames to the stack, or begins one with it.
func (p *Page) frames(l *Line) {
	s := &p.stack
	var first *Resolved
	if h := p.elementAt(l, l.Frames[0].At); h != nil {
		first = &h.answer
	}
	full := len(s.rows) >= maxStackRows || len(s.text) >= maxStackText
	if s.open() && (full || !s.continues(l, first)) {
		belongs := full && s.continues(l, first)
		p.endStack()
		s.cut = belongs
	}
	if !s.open() {
		s.process = l.Process
		s.message = append(s.message[:0], p.last...)
	}
	s.waiting = false
	if first != nil {
		s.number, s.dialect = first.Frame, first.Dialect
	} else if s.number != NoNumber {
		s.number++
	}
	marks := l.Frames
	from := -1 // index in s.answers of the last element
	var of *heldElement
	row := stackRow{frame: NoFrame, answer: NoFrame}
	for at := 0; ; {
		end := bytes.IndexByte(l.Text[at:], '\n')
		ended := len(l.EOL) > 0
		if end >= 0 {
			end += at
			ended = true
		} else {
			end = len(l.Text)
		}
		row.more = row.answer >= 0
		for len(marks) > 0 && marks[0].At <= end {
			row = stackRow{frame: NoFrame, answer: NoFrame}
			if h := p.elementAt(l, marks[0].At); h != nil && marks[0].Frame >= 0 {
				if h != of {
					of, from = h, len(s.answers)
					s.answers = append(s.answers, h.answer)
				}
				row.frame, row.answer = marks[0].Frame, from
			}
			marks = marks[1:]
		}
		row.ended = ended
		s.add(l.Text[at:end], row)
		if end == len(l.Text) {
			break
		}
		at = end + 1
	}
}

// elementAt returns the held element around an offset in the text of a line, or nil.
func (p *Page) elementAt(l *Line, at int) *heldElement {
	for i := range l.Elements {
		if e := &l.Elements[i]; e.Start <= at && (at < e.End || at == e.Start) || len(l.Elements) == 1 {
			return p.element(e.Made)
		}
	}
	return nil
}

// single reports whether the stack is the line of one frame without a number, not a backtrace.
func (s *openStack) single() bool {
	return len(s.answers) == 1 && s.answers[0].Frame == NoNumber && s.rows[0].answer == 0 && s.rows[len(s.rows)-1].answer == 0
}

// endStack prints the stack, if one is open.
func (p *Page) endStack() {
	s := &p.stack
	if !s.open() {
		return
	}
	rows := s.rows
	if s.waiting { // the line is after the stack
		rows = rows[:len(rows)-1]
	}
	after := rows[len(rows)-1].end
	s.rows = rows
	same := p.same.of(s)
	b := html.Backtrace{Key: same.key, Message: s.message, Rows: p.rows[:0]}
	if s.cut {
		b.Key = ""
	}
	single := s.single()
	known := same.known || p.html.Known(b.Key)
	if same.known = known && !s.cut; single {
		known = p.html.Large()
	}
	at := 0
	for i := range rows {
		r := &rows[i]
		row := html.Row{Text: s.text[at:r.end], Ended: r.ended, Kind: same.kinds[i], More: r.more}
		at = r.end
		if r.answer >= 0 && !known {
			a := &s.answers[r.answer]
			row.Object = objectOf(a)
			if row.Kind != html.System && !r.more {
				d := detailOf(a, r.frame)
				addSource(&d, a, r.frame)
				row.Detail = &d
			}
		}
		b.Rows = append(b.Rows, row)
	}
	b.Time = timeOf(s.message)
	if len(b.Time) == 0 {
		b.Time = timeOf(s.text[:rows[0].end])
	}
	if single {
		p.html.Frames(b.Rows)
	} else {
		p.html.Backtrace(&b)
	}
	if s.waiting {
		r := s.rows[:len(rows)+1][len(rows)]
		p.html.Text(s.text[after:r.end], r.ended)
	}
	clear(b.Rows)
	p.rows = b.Rows
	clear(s.answers)
	*s = openStack{text: s.text[:0], rows: rows[:0], answers: s.answers[:0], message: s.message}
	if cap(s.text) > 2*maxStackText {
		s.text = nil
	}
}

// A heldElement is an element with what a page shows of it.
type heldElement struct {
	answer Resolved
	values []DictValue
}

// element returns the held element that AppendElement has made, or nil.
func (p *Page) element(made []byte) *heldElement {
	if len(made) < 8 || binary.LittleEndian.Uint32(made) != p.round {
		return nil
	}
	if i := binary.LittleEndian.Uint32(made[4:]); int(i) < len(p.held) {
		return &p.held[i]
	}
	return nil
}
