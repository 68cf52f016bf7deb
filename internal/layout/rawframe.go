package layout

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
)

// Part appends one part of an answer, in the form that p selects, with the texts in t. It appends
// nothing for Nothing and NothingInCalls.
func (l *Line) Part(p dialect.Part, t *Frame) {
	switch p {
	case dialect.Nothing, dialect.NothingInCalls:
		return
	case dialect.Name, dialect.Rename:
		l.Function(t.Name)
	case dialect.Decimal:
		l.Function(t.decimal())
	case dialect.Spaced:
		l.Function(t.spaced())
	case dialect.Func, dialect.FuncAt, dialect.Inlined, dialect.Other:
		l.Function(t.Function())
	case dialect.BareFunc:
		l.Function(bareFunction(t.Function()))
	case dialect.AtBase:
		l.FileLine(t, t.File[strings.LastIndexByte(t.File, '/')+1:], ":", false)
	case dialect.AtSource:
		file := strings.TrimPrefix(t.File, "./")
		if t.Line == "0" {
			l.Value(file)
			return
		}
		l.FileLine(t, file, ":", true)
	case dialect.AtSpaced:
		l.FileLine(t, t.File, " : ", false)
	default:
		l.FileLine(t, t.File, ":", p == dialect.AtColumn)
	}
}

// Number appends the number of a frame, or the depth of an inlined call, without an allocation.
func (l *Line) Number(n int) {
	var digits [20]byte
	l.Dim(string(strconv.AppendInt(digits[:0], int64(n), 10)))
}

// LocatedIndent is the indentation of a raw frame's continuation lines, in columns.
const LocatedIndent = 4

// InlinedCall appends a line for a function inlined at the address of a frame. It repeats the text
// before the frame. before, between and after surround the function and its file and line.
func (l *Line) InlinedCall(text []byte, fr *judge.Frame, t Frame, before, between, after string) {
	l.Beneath(text, fr, 0)
	l.Display.FrameBegins(len(l.Buf), LocatedIndent)
	l.Mark(before)
	l.Display.Breakable(len(l.Buf))
	l.Function(t.Name)
	if t.File != "" {
		l.Display.Breakable(len(l.Buf))
		l.Mark(between)
		l.Part(dialect.AtLine, &t)
	}
	l.Mark(after)
	l.EndBeneath(text, fr)
}

// NumberedCall appends ClickHouse's line for the depth-th inlined call at the address of a frame.
func (l *Line) NumberedCall(text []byte, fr *judge.Frame, t Frame, depth int) {
	l.Beneath(text, fr, 0)
	l.Display.FrameBegins(len(l.Buf), LocatedIndent)
	l.Number(fr.Number)
	l.Mark(".")
	l.Number(depth)
	l.Mark(". inlined from ")
	if t.File != "" {
		l.Display.Breakable(len(l.Buf))
		l.Part(dialect.AtLine, &t)
		l.Mark(": ")
	}
	l.Display.Breakable(len(l.Buf))
	l.Function(t.Name)
	l.EndBeneath(text, fr)
}

// PlaceBelow appends a line with the file and line of a call, indented as in Rust's backtraces.
func (l *Line) PlaceBelow(text, eol []byte, fr *judge.Frame, t Frame) {
	if t.File == "" || t.Line == "0" { // Rust prints no location without a line
		return
	}
	l.NextLine(eol)
	l.Beneath(text, fr, dialect.PlaceColumn)
	l.Mark("at ")
	l.Part(dialect.AtColumn, &t)
	l.EndBeneath(text, fr)
}

// Beneath begins a line of output below a frame's line: with the text before the frame, unless that
// text is longer than MaxRepeat, and n blanks.
func (l *Line) Beneath(text []byte, fr *judge.Frame, n int) {
	if fr.Start <= MaxRepeat {
		l.LogBytes(text[Ended(text[:fr.Start]):fr.Start])
	}
	l.Mark(strings.Repeat(" ", min(max(n, 0), MaxRepeat)))
}

// EndBeneath ends a line that Beneath has begun. If the repeated text before the frame has escape
// sequences, it appends those after the frame's last edit, which end the colours.
func (l *Line) EndBeneath(text []byte, fr *judge.Frame) {
	if len(fr.Edits) > 0 && fr.Start <= MaxRepeat && bytes.IndexByte(text[:fr.Start], esc) >= 0 {
		l.Sequences(dialect.Colors(text[fr.Edits[len(fr.Edits)-1].To:]))
	}
}

// Ended returns the length of the colour sequences at the start of text, if the last of them resets
// all colours; otherwise it returns 0. These sequences end the previous line's colour, and must not
// be repeated on added lines.
func Ended(text []byte) (end int) {
	for _, s := range dialect.Colors(text) {
		if !bytes.HasPrefix(text[end:], s) {
			break
		}
		end += len(s)
	}
	if bytes.HasSuffix(text[:end], []byte("\x1b[0m")) || bytes.HasSuffix(text[:end], []byte("\x1b[m")) {
		return end
	}
	return 0
}

// AroundAnswer splits the colour sequences in text, which an answer replaces. begin must be printed
// before the answer, and end after it. If text has several sequences, end is the last one, which
// ends the colours of begin. Otherwise end is empty.
func AroundAnswer(text []byte) (begin, end [][]byte) {
	all := dialect.Colors(text)
	if n := len(all) - 1; n > 0 {
		return all[:n], all[n:]
	}
	return all, nil
}

// Sequences appends escape sequences of the log.
func (l *Line) Sequences(all [][]byte) {
	for _, s := range all {
		l.LogBytes(s)
	}
}
