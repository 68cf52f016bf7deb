package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/appearance"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/symbolize"
)

// snippets lays out source lines below frames.
type snippets struct {
	shownLine uint32          // the source line that was laid out last
	shownFile string          // its file; empty: none
	shownAt   int64           // number of the log's line with the frame that it belongs to
	reader    *dialect.Reader // finds source lines that look like frames
	scratch   []byte
}

// recordedFrame returns the i-th frame with its file as debug information has it.
func (s *sources) recordedFrame(i int) symbolize.Frame {
	fr := s.frames[i]
	fr.File = s.recorded[i]
	return fr
}

// location returns the place in its module that a was looked up at.
func (a *answer) location() symbolize.Location {
	return symbolize.Location{ID: a.mod.buildID(), Name: a.mod.asked(), Addr: a.rel}
}

// sourceBelow lays out the source lines of the i-th frame of a on lines of their own, if it is an own
// frame, and the frame directly before it has not the same line. Each line comes after eol and what
// begin lays out, the text before the frame; end ends it.
func sourceBelow(f *lineFilter, a *answer, i int, eol []byte, begin, end func()) {
	if !f.printsSources || !a.hasText || a.text.sources == nil || i >= len(a.text.recorded) || a.text.ofSystem(i) {
		return
	}
	fr := a.text.recordedFrame(i)
	if fr.File == "" || fr.Line == 0 {
		return
	}
	p := &f.snippets
	again := p.shownFile == fr.File && p.shownLine == fr.Line && f.of-p.shownAt <= 1
	p.shownFile, p.shownLine, p.shownAt = fr.File, fr.Line, f.of
	if again {
		return
	}
	s := f.sourceOf(a.location(), &fr)
	for i, line := range s.Lines {
		number := s.First + uint32(i)
		f.nextLine(eol)
		f.look.Attach()
		begin()
		shown, caret := p.sourceLine(number, line, fr.Column, f.look.SourceColumns(f.buf))
		if number == fr.Line {
			f.pen(f.state)
			f.buf = append(f.buf, shown...)
		} else {
			f.dim(string(shown))
		}
		end()
		if number == fr.Line && caret >= 0 {
			f.nextLine(eol)
			f.look.Attach()
			begin()
			p.scratch = appearance.AppendCaret(p.scratch[:0], number, caret)
			f.mark(string(p.scratch))
			end()
		}
		f.printLarge()
	}
}

// sourceLine returns a source line as it is shown, and the place of a caret: see
// [appearance.AppendSourceColumns]. A line with a frame of a backtrace in it is made to have none, so that
// another filter changes nothing. The result is valid until the next call.
func (p *snippets) sourceLine(number uint32, line []byte, column uint32, most int) (shown []byte, caret int) {
	p.scratch, caret = appearance.AppendSourceColumns(p.scratch[:0], number, line, column, most)
	if p.reader == nil {
		p.reader = dialect.NewReader(nil)
	}
	if p.reader.Line(p.scratch, 1) != nil {
		p.scratch, caret = bytes.ReplaceAll(p.scratch, []byte("0x"), []byte(`0\x78`)), -1
		if p.reader.Line(p.scratch, 1) != nil {
			p.scratch, _ = appearance.AppendSourceColumns(p.scratch[:0], number, []byte("..."), 0, most)
		}
		p.reader.Reset()
	}
	return p.scratch, caret
}

// source lays out the source lines of the i-th frame of a, below its line.
func (c *locator) source(text, eol []byte, fr *judge.Frame, a *answer, i int) {
	if c.f.printsSources && !inObject(fr) && !bytes.Contains(text, []byte("SUMMARY: ")) { // which repeats a frame
		sourceBelow(c.f, a, i, eol, func() { c.beneath(text, fr, 0) }, func() { c.endBeneath(text, fr) })
	}
}
