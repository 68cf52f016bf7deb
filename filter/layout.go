package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A layout is the text of the current line, as far as it is laid out: pieces of the log, and answers
// in place of elements.
//
// It keeps two colours apart: the one that the log asked for and the one that was last printed.
// Sequences are printed only before text, and only the difference.
type layout struct {
	buf      []byte
	color    Color
	terminal bool
	visible  visible
	before   []byte // scratch: what is repeated on inlined lines
	between  []byte // ends a line of the output that is followed by another of the same line of the log; nil: as that line ends

	state sgr.State // the log's; not followed unless color is ColorAlways
	cur   sgr.State // the output's
}

// drop takes back what is laid out.
func (l *layout) drop() {
	l.buf = l.buf[:0]
	l.state, l.cur = sgr.State{}, sgr.State{}
}

// nextLine continues on another line of the output.
func (l *layout) nextLine(eol []byte) {
	if l.between != nil {
		eol = l.between
	}
	l.endColor()
	l.buf = append(l.buf, eol...)
}

// pen makes the output's colour to, unless this layout does not follow colours. All that is laid
// out comes through here, except for frames without colour: see frame.
func (l *layout) pen(to sgr.State) {
	if l.color == ColorAlways && l.cur != to {
		l.buf = sgr.AppendTransition(l.buf, l.cur, to)
		l.cur = to
	}
}

// highlight is the colour of elements: blue, or cyan where the log is blue.
func (l *layout) highlight() sgr.State {
	if l.state.Foreground == sgr.Blue {
		return l.state.WithForeground(sgr.Cyan)
	}
	return l.state.WithForeground(sgr.Blue)
}

// logToken prints text or a colour sequence of the log.
func (l *layout) logToken(t *markup.Token) {
	if t.Kind == markup.SGR {
		switch l.color {
		case ColorKeep:
			l.buf = append(l.buf, t.Raw...)
		case ColorAlways:
			l.state = l.state.Apply(t.Raw)
		}
		return
	}
	l.pen(l.state)
	if l.terminal {
		l.buf = l.visible.append(l.buf, t.Raw, true)
	} else {
		l.buf = append(l.buf, t.Raw...)
	}
}

// logBytes prints bytes of the log, which may hold colour sequences; an element is text there.
func (l *layout) logBytes(b []byte) {
	var s markup.Scanner
	s.Reset(b)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		l.logToken(&t)
	}
}

// withoutColor returns b without its colour sequences.
func withoutColor(b []byte) []byte {
	if bytes.IndexByte(b, esc) < 0 {
		return b
	}
	l := layout{color: ColorNever}
	l.logBytes(b)
	return l.buf
}

// mark prints a part of an element that is the same for all of its kind.
func (l *layout) mark(s string) {
	l.pen(l.highlight())
	l.buf = append(l.buf, s...)
}

// value prints a part of an element that was found out or that the log gave.
func (l *layout) value(s string) {
	l.pen(l.state.WithForeground(sgr.Green))
	l.buf = append(l.buf, s...)
}

// endColor ends a dangling colour: it ends with its line.
func (l *layout) endColor() {
	l.state = sgr.State{}
	l.pen(l.state)
}

// blank reports whether a piece that is no element shows nothing. A colour
// sequence that passes as it came does: what it sets lasts beyond its line.
func (l *layout) blank(p *piece) bool {
	return p.Kind == markup.SGR && l.color != ColorKeep || len(bytes.Trim(p.Raw, " \t")) == 0
}
