package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/appearance"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A layout is the text of the current line so far: text of the log, and answers in place of
// elements.
//
// If colours are followed, it has two: the colour that the log has set, and that of the output so
// far. A sequence is printed only before text, and only if these differ.
type layout struct {
	buf      []byte
	color    Color
	terminal bool
	visible  visible
	before   []byte // scratch: text that is repeated on the lines of inlined calls
	between  []byte // line end within the output for one line of the log; nil: the line's own
	links    bool   // files and lines have links: see Paths.Hyperlinks

	quick bool              // neither colours nor links are printed, and there is no look
	look  *appearance.Lines // nil: the output is for programs

	state sgr.State // the log's; not followed unless color is ColorAlways
	cur   sgr.State // the output's
}

// drop removes all text.
func (l *layout) drop() {
	l.buf = l.buf[:0]
	l.state, l.cur = sgr.State{}, sgr.State{}
	if l.look != nil {
		l.look.Forget()
	}
}

// nextLine begins another line of output for the same line of the log.
func (l *layout) nextLine(eol []byte) {
	if l.between != nil {
		eol = l.between
	}
	l.endColor()
	if l.look == nil {
		l.buf = append(l.buf, eol...)
		return
	}
	l.buf = append(l.look.EndLine(l.buf), eol...)
	l.look.BeginLine(len(l.buf))
}

// pen changes the colour of the output to to. If colours are not followed, it does nothing; only
// logToken and the fast path of frame depend on that too.
func (l *layout) pen(to sgr.State) {
	if l.color == ColorAlways {
		l.penTo(to)
	}
}

// penTo is pen if colours are followed. It is not inlined, so that pen is.
//
//go:noinline
func (l *layout) penTo(to sgr.State) {
	if l.cur != to {
		l.buf = sgr.AppendTransition(l.buf, l.cur, to)
		l.cur = to
	}
}

// highlight returns the colour of elements: blue, or cyan if the log's colour is blue.
func (l *layout) highlight() sgr.State {
	if l.state.Foreground == sgr.Blue {
		return l.state.WithForeground(sgr.Cyan)
	}
	return l.state.WithForeground(sgr.Blue)
}

// logToken lays out text or a colour sequence of the log.
func (l *layout) logToken(t *markup.Token) {
	if t.Kind == markup.SGR {
		switch l.color {
		case ColorKeep:
			l.buf = append(l.buf, t.Raw...)
		case ColorAlways:
			l.breakSequence()
			l.state = l.state.Apply(t.Raw)
		case ColorNever:
			l.breakSequence()
		case ColorForPrinter:
			l.breakSequence()
			l.buf = append(l.buf, t.Raw...)
		}
		return
	}
	l.pen(l.state)
	if l.terminal || l.color == ColorForPrinter && bytes.IndexByte(t.Raw, esc) >= 0 {
		l.buf = l.visible.append(l.buf, t.Raw, true)
	} else {
		l.buf = append(l.buf, t.Raw...)
	}
}

// logBytes lays out bytes of the log, which may hold colour sequences. Elements in b are text.
func (l *layout) logBytes(b []byte) {
	if !l.terminal && (l.color == ColorKeep || l.color != ColorAlways && bytes.IndexByte(b, esc) < 0) {
		l.buf = append(l.buf, b...)
		return
	}
	var s markup.Scanner
	s.Reset(b)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		l.logToken(&t)
	}
}

// withoutColor returns b without its colour sequences, including those within elements. If leaving
// out one would join the bytes around it to another sequence, the ESC of that is escaped.
func withoutColor(b []byte) []byte {
	if bytes.IndexByte(b, esc) < 0 {
		return b
	}
	l := layout{color: ColorNever}
	var s markup.Scanner
	s.Reset(b)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		if t.Kind == markup.Elem {
			l.logBytes(t.Raw[:len(markupOpen)])
			l.logBytes(t.Raw[len(markupOpen):]) // not an element without its braces: colours in it are found
		} else {
			l.logToken(&t)
		}
	}
	return l.buf
}

// breakSequence escapes the ESC of an unfinished colour sequence at the end of the text, because
// the text that is laid out next does not follow it in the log: an answer that begins with "m", or
// text after a colour sequence that is left out, would complete it.
func (l *layout) breakSequence() {
	if n := markup.UnfinishedSGR(l.buf); n > 0 {
		rest := string(l.buf[len(l.buf)-n+1:])
		l.buf = append(append(l.buf[:len(l.buf)-n], `\x1b`...), rest...)
	}
}

// mark lays out text that is the same in all answers of a kind, in the colour of elements.
func (l *layout) mark(s string) {
	l.pen(l.highlight())
	l.buf = append(l.buf, s...)
}

// value lays out a part of an answer, in green.
func (l *layout) value(s string) {
	l.pen(l.state.WithForeground(sgr.Green))
	l.buf = append(l.buf, s...)
}

// endColor ends the log's colour, since a dangling colour ends with its line.
func (l *layout) endColor() {
	l.state = sgr.State{}
	l.pen(l.state)
}

// blank reports whether a piece that is not an element has no visible output. A colour sequence
// that is printed as it is is not blank: the colour continues after the line.
func (l *layout) blank(p *piece) bool {
	return p.Kind == markup.SGR && l.color != ColorKeep || len(bytes.Trim(p.Raw, " \t")) == 0
}
