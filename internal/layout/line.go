package layout

import (
	"bytes"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

const esc = 0x1b

var markupOpen = []byte("{{{")

// Colors is what becomes of the colour sequences of the log, and whether answers have colours.
type Colors uint8

const (
	Kept     Colors = iota // printed as they are; answers have no colours
	Followed               // restored after coloured answers, ended with each line
	Removed                // answers have no colours
	Separate               // as Removed, but those of the log stay in the text, none of them joined by an answer
)

// MaxRepeat is the number of bytes of text around a frame that inlined calls repeat.
const MaxRepeat = 4 << 10

// A Line is the text of the current line so far: text of the log, and answers in place of
// elements.
//
// If colours are followed, it has two: the colour that the log has set, and that of the output so
// far. A sequence is printed only before text, and only if these differ.
type Line struct {
	Buf      []byte // the caller may add text without colours
	Colors   Colors
	Terminal bool // control characters of the log are escaped
	Visible  visible
	Between  []byte // line end within the output for one line of the log; nil: the line's own
	Links    bool   // files and lines have links, if their frames have URLs

	Display *Display // nil: the output is for programs

	State   sgr.State // the log's; not followed unless Colors is Followed
	Current sgr.State // the output's
}

// Drop removes all text.
func (l *Line) Drop() {
	l.Buf = l.Buf[:0]
	l.State, l.Current = sgr.State{}, sgr.State{}
	if l.Display != nil {
		l.Display.Forget()
	}
}

// NextLine begins another line of output for the same line of the log.
func (l *Line) NextLine(eol []byte) {
	if l.Between != nil {
		eol = l.Between
	}
	l.EndColor()
	if l.Display == nil {
		l.Buf = append(l.Buf, eol...)
		return
	}
	l.Buf = append(l.Display.EndLine(l.Buf), eol...)
	l.Display.BeginLine(len(l.Buf))
}

// Pen changes the colour of the output to to. If colours are not followed, it does nothing; only
// LogToken, and callers that add text without colours at once, depend on that too.
func (l *Line) Pen(to sgr.State) {
	if l.Colors == Followed {
		l.penTo(to)
	}
}

// penTo is Pen if colours are followed. It is not inlined, so that Pen is.
//
//go:noinline
func (l *Line) penTo(to sgr.State) {
	if l.Current != to {
		l.Buf = sgr.AppendTransition(l.Buf, l.Current, to)
		l.Current = to
	}
}

// highlight returns the colour of elements: blue, or cyan if the log's colour is blue.
func (l *Line) highlight() sgr.State {
	if l.State.Foreground == sgr.Blue {
		return l.State.WithForeground(sgr.Cyan)
	}
	return l.State.WithForeground(sgr.Blue)
}

// LogToken lays out text or a colour sequence of the log.
func (l *Line) LogToken(t *markup.Token) {
	if t.Kind == markup.SGR {
		switch l.Colors {
		case Kept:
			l.Buf = append(l.Buf, t.Raw...)
		case Followed:
			l.BreakSequence()
			l.State = l.State.Apply(t.Raw)
		case Removed:
			l.BreakSequence()
		case Separate:
			l.BreakSequence()
			l.Buf = append(l.Buf, t.Raw...)
		}
		return
	}
	l.Pen(l.State)
	if l.Terminal || l.Colors == Separate && bytes.IndexByte(t.Raw, esc) >= 0 {
		l.Buf = l.Visible.Append(l.Buf, t.Raw, true)
	} else {
		l.Buf = append(l.Buf, t.Raw...)
	}
}

// LogBytes lays out bytes of the log, which may hold colour sequences. Elements in b are text.
func (l *Line) LogBytes(b []byte) {
	if !l.Terminal && (l.Colors == Kept || l.Colors != Followed && bytes.IndexByte(b, esc) < 0) {
		l.Buf = append(l.Buf, b...)
		return
	}
	var s markup.Scanner
	s.Reset(b)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		l.LogToken(&t)
	}
}

// WithoutColor returns b without its colour sequences, including those within elements. If leaving
// out one would join the bytes around it to another sequence, the ESC of that is escaped.
func WithoutColor(b []byte) []byte {
	if bytes.IndexByte(b, esc) < 0 {
		return b
	}
	l := Line{Colors: Removed}
	var s markup.Scanner
	s.Reset(b)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		if t.Kind == markup.Elem {
			l.LogBytes(t.Raw[:len(markupOpen)])
			l.LogBytes(t.Raw[len(markupOpen):]) // not an element without its braces: colours in it are found
		} else {
			l.LogToken(&t)
		}
	}
	return l.Buf
}

// BreakSequence escapes the ESC of an unfinished colour sequence at the end of the text, because
// the text that is laid out next does not follow it in the log: an answer that begins with "m", or
// text after a colour sequence that is left out, would complete it.
func (l *Line) BreakSequence() {
	if n := markup.UnfinishedSGR(l.Buf); n > 0 {
		rest := string(l.Buf[len(l.Buf)-n+1:])
		l.Buf = append(append(l.Buf[:len(l.Buf)-n], `\x1b`...), rest...)
	}
}

// Mark lays out text that is the same in all answers of a kind, in the colour of elements.
func (l *Line) Mark(s string) {
	l.Pen(l.highlight())
	l.Buf = append(l.Buf, s...)
}

// Value lays out a part of an answer, in green.
func (l *Line) Value(s string) {
	l.Pen(l.State.WithForeground(sgr.Green))
	l.Buf = append(l.Buf, s...)
}

// EndColor ends the log's colour, since a dangling colour ends with its line.
func (l *Line) EndColor() {
	l.State = sgr.State{}
	l.Pen(l.State)
}

// Blank reports whether a token that is not an element has no visible output. A colour sequence
// that is printed as it is is not blank: the colour continues after the line.
func (l *Line) Blank(t *markup.Token) bool {
	return t.Kind == markup.SGR && l.Colors != Kept || len(bytes.Trim(t.Raw, " \t")) == 0
}
