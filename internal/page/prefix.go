package page

import (
	"bytes"

	"github.com/symfilter/symfilter/filter"
)

// A prefixed makes a copy of a filter.Line with a prefix before each line of its text.
type prefixed struct {
	line   filter.Line
	prefix []byte
	from   int // offset in the text without prefixes, up to which moved has counted lines
	lines  int // number of lines that begin at or before from
}

// maxShifted bounds the elements and frames of a line with prefixes. Beyond it, the line is shown
// as text alone, since counting the lines before each element takes time.
const maxShifted = 4096

// add returns l with prefixes, valid until the next call. If there is no prefix, it returns l.
func (p *prefixed) add(l *filter.Line, prefix func(dst []byte, line int64) []byte) *filter.Line {
	p.prefix = prefix(p.prefix[:0], l.Number)
	if len(p.prefix) == 0 {
		return l
	}
	text, elements, frames := p.line.Text[:0], p.line.Elements[:0], p.line.Frames[:0]
	p.line = *l
	for line := range bytes.Lines(l.Text) {
		text = append(append(text, p.prefix...), line...)
	}
	if len(l.Text) == 0 || l.Text[len(l.Text)-1] == '\n' {
		text = append(text, p.prefix...)
	}
	if len(l.Elements)+len(l.Frames) <= maxShifted {
		p.from, p.lines = 0, 1
		for _, e := range l.Elements {
			e.Start, e.End = p.moved(l.Text, e.Start), p.moved(l.Text, e.End)
			elements = append(elements, e)
		}
		p.from, p.lines = 0, 1
		for _, f := range l.Frames {
			f.At = p.moved(l.Text, f.At)
			frames = append(frames, f)
		}
	}
	p.line.Text, p.line.Elements, p.line.Frames = text, elements, frames
	return &p.line
}

// moved converts an offset in text to the offset in the text with prefixes. Increasing offsets take
// linear time.
func (p *prefixed) moved(text []byte, at int) int {
	at = min(at, len(text))
	if at < p.from {
		p.from, p.lines = 0, 1
	}
	p.lines += bytes.Count(text[p.from:at], newline)
	p.from = at
	return at + p.lines*len(p.prefix)
}
