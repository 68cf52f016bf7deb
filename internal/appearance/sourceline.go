package appearance

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

// How source lines are shown below frames.
const (
	numberColumns = 6 // of the number of a source line, with the blanks before it
	tabColumns    = 8

	// SourceColumns are the columns of a source line that are shown if the width of the output is
	// not known. Generated lines have megabytes.
	SourceColumns = 160

	// SourceMargin is the number of columns beside the text of a source line: its number, and the
	// dots that stand for the rest of a long line.
	SourceMargin = numberColumns + len(" | ") + len("...")
)

// AppendSourceLine is AppendSourceColumns with at most SourceColumns.
func AppendSourceLine(dst []byte, number uint32, line []byte, column uint32) (_ []byte, caret int) {
	return AppendSourceColumns(dst, number, line, column, SourceColumns)
}

// AppendSourceColumns appends a line of a source file as people read it, after its number: the
// number and the line with its tabs as blanks, and everything visible that a terminal may obey or
// that is not UTF-8. Of the line at most the first most columns are shown; a character counts as
// one. An element of markup in it is not one any more.
//
// caret is the number of blanks before a caret below byte column of the line, which counts from 1;
// negative if column is 0, or its byte is not shown.
func AppendSourceColumns(dst []byte, number uint32, line []byte, column uint32, most int) (_ []byte, caret int) {
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

// AppendCaret appends a line with a caret after the blanks of AppendSourceLine, below a source line
// with this number.
func AppendCaret(dst []byte, number uint32, caret int) []byte {
	at := max(numberColumns, len(strconv.FormatUint(uint64(number), 10)))
	dst = append(appendBlanks(dst, at), " |"...)
	return append(appendBlanks(dst, caret-at-len(" |")), '^')
}

// appendBlanks appends n blanks, if n is positive.
func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}
