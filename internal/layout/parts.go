package layout

import "github.com/symfilter/symfilter/sgr"

// If colours are followed, the parts of an answer differ in look. Functions are bold. Arguments,
// addresses and modules are dim, because readers need them last. Unresolved parts are yellow. All
// else keeps the attributes of the log around the answer.

func (l *Line) bold() sgr.State {
	s := l.State
	s.Attrs = s.Attrs&^sgr.Faint | sgr.Bold
	return s
}

func (l *Line) faint() sgr.State {
	s := l.State
	s.Attrs = s.Attrs&^sgr.Bold | sgr.Faint
	return s
}

// Dim appends an address, a module, or another part that readers need last.
func (l *Line) Dim(s string) {
	if s == "" {
		return
	}
	if l.Colors == Followed {
		l.penTo(l.faint())
	}
	l.Buf = append(l.Buf, s...)
}

// Unresolved appends a part of the answer for an address without a name.
func (l *Line) Unresolved(s string) {
	l.Pen(l.State.WithForeground(sgr.Yellow))
	l.Buf = append(l.Buf, s...)
}

// Function appends the name of a function or variable, bold, with dim arguments.
func (l *Line) Function(name string) {
	if l.Colors != Followed && l.Display == nil {
		l.Buf = append(l.Buf, name...)
		return
	}
	if name == UnknownFunction {
		l.Unresolved(name)
		return
	}
	from, to := argumentsOf(name)
	l.Pen(l.bold())
	l.Buf = append(l.Buf, name[:from]...)
	l.Display.BreakableName(len(l.Buf)-from, name[:from])
	if from < to {
		l.Display.BreakableArguments(len(l.Buf))
		l.Pen(l.faint())
		l.Buf = append(l.Buf, name[from:to]...)
		l.Display.BreakableName(len(l.Buf)-(to-from), name[from:to])
	}
	if to < len(name) {
		l.Pen(l.bold())
		l.Buf = append(l.Buf, name[to:]...)
	}
}

// FileLine appends the source file and line of a frame, separated by the parameter between. The
// parameter file is the form of t.File to print. If column is set, FileLine also appends the
// column, if known.
func (l *Line) FileLine(t *Frame, file, between string, column bool) {
	if t.Link != "" && l.Links {
		l.Buf = append(append(append(l.Buf, "\x1b]8;;"...), t.Link...), "\x1b\\"...)
		defer l.endLink()
	}
	l.Value(file)
	l.Buf = append(l.Buf, between...)
	l.Buf = append(l.Buf, t.Line...)
	if column && t.Column != "" {
		l.Buf = append(append(l.Buf, ':'), t.Column...)
	}
}

// endLink ends a link (OSC 8).
func (l *Line) endLink() { l.Buf = append(l.Buf, "\x1b]8;;\x1b\\"...) }
