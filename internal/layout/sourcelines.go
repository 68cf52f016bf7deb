package layout

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/appearance"
	"github.com/symfilter/symfilter/internal/dialect"
)

// SourceLines are the source lines below frames.
type SourceLines struct {
	shownLine uint32          // the source line that was laid out last
	shownFile string          // its file; empty: none
	shownAt   int64           // number of the log's line with the frame that it belongs to
	reader    *dialect.Reader // finds source lines that look like frames
	scratch   []byte
}

// Repeats reports whether the source line of the frame in the log's line with the number at was
// laid out for the frame directly before it.
func (p *SourceLines) Repeats(file string, line uint32, at int64) bool {
	again := p.shownFile == file && p.shownLine == line && at-p.shownAt <= 1
	p.shownFile, p.shownLine, p.shownAt = file, line, at
	return again
}

// Below lays out the text of a source line below a frame, whose line and column it marks. Each line
// comes after eol and what begin lays out, the text before the frame; end ends it.
func (p *SourceLines) Below(l *Line, number uint32, text []byte, line, column uint32, eol []byte, begin, end func()) {
	next := func() {
		l.NextLine(eol)
		l.Look.Attach()
		begin()
	}
	next()
	shown, caret := p.sourceLine(number, text, column, l.Look.SourceColumns(l.Buf))
	if number != line {
		l.Dim(string(shown))
		end()
		return
	}
	l.Pen(l.State)
	l.Buf = append(l.Buf, shown...)
	end()
	if caret >= 0 {
		next()
		p.scratch = appearance.AppendCaret(p.scratch[:0], number, caret)
		l.Mark(string(p.scratch))
		end()
	}
}

// sourceLine returns a source line as it is shown, and the place of a caret: see
// [appearance.AppendSourceColumns]. A line with a frame of a backtrace in it is made to have none, so that
// another filter changes nothing. The result is valid until the next call.
func (p *SourceLines) sourceLine(number uint32, line []byte, column uint32, most int) (shown []byte, caret int) {
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
