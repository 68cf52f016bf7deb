package filter

import (
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// painter keeps two colours apart: the one that the log asked for and the one
// that was last printed. Sequences are printed only where text follows, and
// only the difference.
type painter struct {
	paint  bool      // Color is ColorAlways
	state  sgr.State // the log's
	cur    sgr.State // the output's
	before []byte    // scratch: what is repeated on inlined lines
}

// pen makes the output's colour to.
func (f *Filter) pen(to sgr.State) {
	if f.cur != to {
		f.out = sgr.AppendTransition(f.out, f.cur, to)
		f.cur = to
	}
}

// highlight is the colour of elements: blue, or cyan where the log is blue.
func (f *Filter) highlight() sgr.State {
	if f.state.Foreground == sgr.Blue {
		return f.state.WithForeground(sgr.Cyan)
	}
	return f.state.WithForeground(sgr.Blue)
}

// text prints a piece of the log that is no element.
func (f *Filter) text(p *piece) {
	if p.Kind == markup.SGR {
		switch f.o.Color {
		case ColorKeep:
			f.out = append(f.out, p.Raw...)
		case ColorAlways:
			f.state = f.state.Apply(p.Raw)
		}
		return
	}
	if f.paint {
		f.pen(f.state)
	}
	f.logText(p.Raw)
}

// logText prints bytes of the log.
func (f *Filter) logText(b []byte) {
	if f.o.Terminal {
		f.out = f.visible.append(f.out, b, true)
	} else {
		f.out = append(f.out, b...)
	}
}

// mark prints a part of an element that is the same for all of its kind.
func (f *Filter) mark(s string) {
	if f.paint {
		f.pen(f.highlight())
	}
	f.out = append(f.out, s...)
}

// value prints a part of an element that was found out or that the log gave.
func (f *Filter) value(s string) {
	if f.paint {
		f.pen(f.state.WithForeground(sgr.Green))
	}
	f.out = append(f.out, s...)
}

func (f *Filter) valueBytes(b []byte) {
	if f.paint {
		f.pen(f.state.WithForeground(sgr.Green))
	}
	f.out = append(f.out, b...)
}

// endLine ends the line at work: what was printed of it is a line of the
// output, or an object.
func (f *Filter) endLine(eol []byte) {
	f.endText(eol)
	if f.json != nil {
		f.emit(false)
	}
}

// endText ends the text of the line at work, with its footnotes.
func (f *Filter) endText(eol []byte) {
	if len(f.notes) > 0 {
		f.printNotes(eol)
	}
	if f.json != nil {
		eol = nil
	}
	f.breakLine(eol)
}

// nextLine goes on to another line that is printed for the line at work.
func (f *Filter) nextLine(eol []byte) {
	if f.json != nil {
		eol = newline
	}
	f.breakLine(eol)
}

// breakLine prints a line end; a dangling colour ends with the line.
func (f *Filter) breakLine(eol []byte) {
	if f.paint {
		f.state = sgr.State{}
		f.pen(f.state)
	}
	f.out = append(f.out, eol...)
}
