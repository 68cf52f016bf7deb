package layout

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

const esc = 0x1b

var markupOpen = []byte("{{{")

// Colors selects what happens to the colour sequences of the log, and whether answers are coloured.
type Colors uint8

const (
	Kept     Colors = iota // appended unchanged; answers have no colours
	Followed               // restored after coloured answers, and ended with each line
	Removed                // removed; answers have no colours either
	// kept in the log's text, but an answer cannot complete an unfinished sequence; answers have no
	// colours
	Separate
)

// MaxRepeat bounds the text around a frame that the lines of inlined calls repeat, in bytes.
const MaxRepeat = 4 << 10

// A Line is the text of the current line so far: text of the log, and answers (resolved names and
// locations) in place of markup elements and raw frames.
//
// If colours are followed, a Line has two colours: the log's, and the output's current one. It
// prints a sequence only before text, and only if the two differ.
type Line struct {
	Buf      []byte // text so far; the caller may add text without colours
	Colors   Colors
	Terminal bool // control characters of the log are escaped
	Visible  visible
	Between  []byte // line end between lines of output for one line of the log; nil: the line's own
	Links    bool   // files and lines have links, if their frames have URLs

	Display *Display // nil: output for programs

	State   sgr.State // colour set by the log; used only if Colors is Followed
	Current sgr.State // colour at the end of Buf
}

// Drop removes the text and its colours.
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

// Pen changes the colour of the output, if colours are followed.
func (l *Line) Pen(to sgr.State) {
	if l.Colors == Followed {
		l.penTo(to)
	}
}

// penTo is Pen without the check of Colors. It is not inlined, so that Pen can be inlined.
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

// LogToken appends a token of the log: text or a colour sequence.
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

// LogBytes appends bytes of the log, which may contain colour sequences. Markup elements in b are
// appended as text.
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

// WithoutColor removes colour sequences from b, even within markup elements. If the bytes around a
// removed sequence would form another sequence, it escapes the ESC of this new sequence.
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
			// Append the braces separately: then LogBytes does not see an element, and removes the
			// colours in its text.
			l.LogBytes(t.Raw[len(markupOpen):])
		} else {
			l.LogToken(&t)
		}
	}
	return l.Buf
}

// BreakSequence escapes the ESC of an unfinished colour sequence at the end of the text. Otherwise
// the text appended next could complete the sequence, although it does not follow in the log: an
// answer that begins with "m", or the text after a removed sequence.
func (l *Line) BreakSequence() {
	if n := access.UnfinishedSGR(l.Buf); n > 0 {
		rest := string(l.Buf[len(l.Buf)-n+1:])
		l.Buf = append(append(l.Buf[:len(l.Buf)-n], `\x1b`...), rest...)
	}
}

// Mark appends fixed text of an answer, such as a bracket, in the colour of elements.
func (l *Line) Mark(s string) {
	l.Pen(l.highlight())
	l.Buf = append(l.Buf, s...)
}

// Value appends a part of an answer, in green.
func (l *Line) Value(s string) {
	l.Pen(l.State.WithForeground(sgr.Green))
	l.Buf = append(l.Buf, s...)
}

// EndColor ends the log's colour, since a colour must end with its line.
func (l *Line) EndColor() {
	l.State = sgr.State{}
	l.Pen(l.State)
}

// Blank reports whether t, which is not a markup element, has no visible output: blanks, or a
// colour sequence unless Colors is Kept. A kept colour continues after the line.
func (l *Line) Blank(t *markup.Token) bool {
	return t.Kind == markup.SGR && l.Colors != Kept || len(bytes.Trim(t.Raw, " \t")) == 0
}
