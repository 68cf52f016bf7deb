package layout

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/sgr"
)

// LogFrame appends text[from:to], a part of a line of the log that contains the frame fr. If
// colours are followed and the line has no colour sequence, the text from the frame's start on gets
// the colour look.
func (l *Line) LogFrame(text []byte, from, to int, fr *judge.Frame, look sgr.State) {
	if l.Colors != Followed || l.State == look || bytes.IndexByte(text, esc) >= 0 {
		l.LogBytes(text[from:to])
		return
	}
	if start := min(max(fr.Start, from), to); from < start {
		l.LogBytes(text[from:start])
		from = start
	}
	before := l.State
	l.State = look
	l.LogBytes(text[from:to])
	l.State = before
}

// Beside returns the colour of log text beside an answer. In a frame with a number, the text is
// dim. In other frames the colour is unchanged, since the text may be part of a sentence.
func (l *Line) Beside(fr *judge.Frame) sgr.State {
	if fr.Number < 0 {
		return l.State
	}
	return l.faint()
}

// LogGroups appends text[at:] as LogFrame does, and allows line breaks before a path, an object and
// a build ID.
func (l *Line) LogGroups(text []byte, at int, fr *judge.Frame, look sgr.State) {
	if l.Display != nil && fr.Number >= 0 && !InObject(fr) {
		for _, group := range []string{" /", " (/", " (BuildId"} {
			if i := bytes.Index(text[at:], []byte(group)); i >= 0 {
				l.LogFrame(text, at, at+i, fr, look)
				at += i
				l.Display.Breakable(len(l.Buf))
			}
		}
	}
	l.LogFrame(text, at, len(text), fr, look)
}

// LogKernel appends the text of a kernel frame from text[at] to its first edit, as LogFrame does.
// It allows line breaks before the function and before its module. It returns the offset after the
// appended text, or its argument at if it appends nothing.
func (l *Line) LogKernel(text []byte, at int, fr *judge.Frame, look sgr.State) int {
	if l.Display == nil || fr.Kernel == nil || len(fr.Edits) == 0 {
		return at
	}
	end := fr.Edits[0].From
	l.Display.Breakable(len(l.Buf))
	if i := bytes.IndexByte(text[at:end], '['); i > 0 {
		l.LogFrame(text, at, at+i-1, fr, look) // without the blank before the module
		l.Display.Breakable(len(l.Buf))
		at += i - 1
	}
	l.LogFrame(text, at, end, fr, look)
	return end
}

// EndsFrame reports whether rest, the log's text after the last answer in a line, belongs to the
// frame. rest must consist of groups in brackets, such as (/lib/libc.so.6+0x2b) (BuildId: aabb).
func EndsFrame(rest []byte) bool {
	depth := 0
	for _, c := range rest {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return false
			}
		case ' ', '\t':
		default:
			if depth == 0 {
				return false
			}
		}
	}
	return depth == 0
}

// InJSON reports whether p is written as JSON.
func InJSON(p dialect.Part) bool {
	return p == dialect.Strings || p == dialect.JSONFunc || p == dialect.JSONSource
}

// InObject reports whether the answer for a frame becomes a member of a JSON object in its line.
func InObject(fr *judge.Frame) bool {
	return len(fr.Edits) > 0 && InJSON(fr.Edits[0].Part)
}

// BreakAtBlank allows a line break after the text so far, if the text ends with a blank or next
// begins with one.
func (l *Line) BreakAtBlank(next string) {
	if l.Display != nil && (bytes.HasSuffix(l.Buf, []byte(" ")) || strings.HasPrefix(next, " ")) {
		l.Display.Breakable(len(l.Buf))
	}
}
