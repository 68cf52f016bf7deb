package filter

import (
	"github.com/symfilter/symfilter/internal/appearance"
	"github.com/symfilter/symfilter/sgr"
)

// The parts of answers, each in its own look if colours are followed: functions are bold; arguments,
// addresses and modules are dim, because a reader looks for them last; what stayed unresolved is
// yellow. Everything else keeps the attributes of the log around it.

// bold returns the look of functions.
func (l *layout) bold() sgr.State {
	s := l.state
	s.Attrs = s.Attrs&^sgr.Faint | sgr.Bold
	return s
}

// faint returns the look of what a reader looks for last.
func (l *layout) faint() sgr.State {
	s := l.state
	s.Attrs = s.Attrs&^sgr.Bold | sgr.Faint
	return s
}

// dim lays out an address, a module, or another part that a reader looks for last.
func (l *layout) dim(s string) {
	if s == "" {
		return
	}
	if l.color == ColorAlways {
		l.penTo(l.faint())
	}
	l.buf = append(l.buf, s...)
}

// unresolved lays out a part of the answer for an address without a name.
func (l *layout) unresolved(s string) {
	l.pen(l.state.WithForeground(sgr.Yellow))
	l.buf = append(l.buf, s...)
}

// function lays out the name of a function or variable, bold, with dim arguments.
func (l *layout) function(name string) {
	if l.color != ColorAlways && l.look == nil {
		l.buf = append(l.buf, name...)
		return
	}
	if name == unknownFunc {
		l.unresolved(name)
		return
	}
	from, to := appearance.Arguments(name)
	l.pen(l.bold())
	l.buf = append(l.buf, name[:from]...)
	l.look.BreakableName(len(l.buf)-from, name[:from])
	if from < to {
		l.look.BreakableArguments(len(l.buf))
		l.pen(l.faint())
		l.buf = append(l.buf, name[from:to]...)
		l.look.BreakableName(len(l.buf)-(to-from), name[from:to])
	}
	if to < len(name) {
		l.pen(l.bold())
		l.buf = append(l.buf, name[to:]...)
	}
}

// source lays out the source file and line of a frame as file:line, or as file, between and line.
// file is the form of t.file to show. With column it appends the column, if that is known.
func (l *layout) source(t *frameText, file, between string, column bool) {
	if t.link != "" && l.links {
		l.buf = append(append(append(l.buf, "\x1b]8;;"...), t.link...), "\x1b\\"...)
		defer l.endLink()
	}
	l.value(file)
	l.buf = append(l.buf, between...)
	l.buf = append(l.buf, t.line...)
	if column && t.col != "" {
		l.buf = append(append(l.buf, ':'), t.col...)
	}
}

// endLink ends a link (OSC 8).
func (l *layout) endLink() { l.buf = append(l.buf, "\x1b]8;;\x1b\\"...) }
