package layout

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
)

// Widths of source lines below frames.
const (
	numberColumns = 6 // width of a source line's number, with leading blanks
	tabColumns    = 8

	// maxSourceColumns bounds the columns of a source line if the width of the output is
	// unknown. Generated lines may have megabytes.
	maxSourceColumns = 160

	// sourceMargin is the number of columns beside the text of a source line: its number, and the
	// dots that replace the rest of a long line.
	sourceMargin = numberColumns + len(" | ") + len("...")
)

// AppendSourceLine appends the number and text of a source line, cut to maxSourceColumns columns.
// For its result, see [appendSourceColumns].
func AppendSourceLine(dst []byte, number uint32, line []byte, column uint32) (_ []byte, caret int) {
	return appendSourceColumns(dst, number, line, column, maxSourceColumns)
}

// appendSourceColumns appends the number and text of a source line for people. Tabs become blanks;
// control characters and invalid UTF-8 become visible. Text wider than the maximum number of
// columns is cut, and ends with dots. Each character counts as one column. Markup elements in the
// text become plain text.
//
// caret is the number of blanks before a caret below the byte at column, which counts from 1. It is
// negative if column is 0, or if the byte is not appended.
func appendSourceColumns(dst []byte, number uint32, line []byte, column uint32, most int) (_ []byte, caret int) {
	digits := strconv.FormatUint(uint64(number), 10)
	dst = appendBlanks(dst, numberColumns-len(digits))
	dst = append(append(dst, digits...), " |"...)
	start := len(dst)
	dst = append(dst, ' ')
	caret = -1
	columns := 0
	for at := 0; at < len(line); {
		if uint64(at)+1 == uint64(column) {
			caret = numberColumns + len(" | ") + columns + max(0, len(digits)-numberColumns)
		}
		before := len(dst)
		n := 1
		switch c := line[at]; {
		case c == '\t':
			dst = appendBlanks(dst, tabColumns-columns%tabColumns)
		case c == '{' && bytes.HasSuffix(dst, []byte("{{")):
			dst = append(dst, `\x7b`...)
		default:
			_, n = utf8.DecodeRune(line[at:])
			dst = escape.AppendText(dst, line[at:at+n], "")
		}
		columns += utf8.RuneCount(dst[before:])
		if columns > most {
			if caret >= 0 && uint64(at)+1 == uint64(column) {
				caret = -1
			}
			return append(dst[:before], "..."...), caret
		}
		at += n
	}
	for len(dst) > start && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst, caret
}

// AppendCaret appends the line with the caret below a source line with this number. The parameter
// caret is the number of blanks that AppendSourceLine returned.
func AppendCaret(dst []byte, number uint32, caret int) []byte {
	at := max(numberColumns, len(strconv.FormatUint(uint64(number), 10)))
	dst = append(appendBlanks(dst, at), " |"...)
	return append(appendBlanks(dst, caret-at-len(" |")), '^')
}

func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}

// SourceLines appends source lines below frames. The zero value is ready to use.
type SourceLines struct {
	shownLine uint32          // source line of the last frame
	shownFile string          // file of shownLine; empty before the first frame
	shownAt   int64           // log line number of the last frame
	reader    *dialect.Reader // detects source lines that look like frames; nil until needed
	scratch   []byte
}

// Repeats reports whether the last frame had the same source line, and was on the same or the
// preceding line of the log. The parameter at is the frame's line number in the log. Repeats
// records the frame as the last one.
func (p *SourceLines) Repeats(file string, line uint32, at int64) bool {
	again := p.shownFile == file && p.shownLine == line && at-p.shownAt <= 1
	p.shownFile, p.shownLine, p.shownAt = file, line, at
	return again
}

// Below appends a source line with its number below a frame. line is the frame's own line. If
// number is line, a second line follows, with a caret below the column. If not, the source line is
// dim. For each line of output, Below appends eol. It then calls begin, which appends the text
// before the frame, and it calls end after the line.
func (p *SourceLines) Below(l *Line, number uint32, text []byte, line, column uint32, eol []byte, begin, end func()) {
	next := func() {
		l.NextLine(eol)
		l.Display.Attach()
		begin()
	}
	next()
	shown, caret := p.sourceLine(number, text, column, l.Display.SourceColumns(l.Buf))
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
		p.scratch = AppendCaret(p.scratch[:0], number, caret)
		l.Mark(string(p.scratch))
		end()
	}
}

// sourceLine returns the displayed form of a source line, and the position of its caret: see
// [appendSourceColumns]. It changes a line that looks like a frame, so that other filters leave the
// line alone. The result is valid until the next call.
func (p *SourceLines) sourceLine(number uint32, line []byte, column uint32, most int) (shown []byte, caret int) {
	p.scratch, caret = appendSourceColumns(p.scratch[:0], number, line, column, most)
	if p.reader == nil {
		p.reader = dialect.NewReader(nil)
	}
	if p.reader.Line(p.scratch, 1) != nil {
		p.scratch, caret = bytes.ReplaceAll(p.scratch, []byte("0x"), []byte(`0\x78`)), -1
		if p.reader.Line(p.scratch, 1) != nil {
			p.scratch, _ = appendSourceColumns(p.scratch[:0], number, []byte("..."), 0, most)
		}
		p.reader.Reset()
	}
	return p.scratch, caret
}
