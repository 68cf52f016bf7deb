package filter

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/sgr"
)

// logFrame lays out text[from:to] of a line of the log with the frame fr. If the line has no colours
// of its own, the part of the frame in it gets a look.
func logFrame(l *layout, text []byte, from, to int, fr *judge.Frame, look sgr.State) {
	if l.color != ColorAlways || l.state == look || bytes.IndexByte(text, esc) >= 0 {
		l.logBytes(text[from:to])
		return
	}
	if start := min(max(fr.Start, from), to); from < start {
		l.logBytes(text[from:start])
		from = start
	}
	before := l.state
	l.state = look
	l.logBytes(text[from:to])
	l.state = before
}

// beside returns the look of the log's text beside an answer: dim in a numbered frame. A frame
// without a number may be words of a sentence.
func beside(l *layout, fr *judge.Frame) sgr.State {
	if fr.Number < 0 {
		return l.state
	}
	return l.faint()
}

// logGroups is logFrame for the rest of the line, which may be broken before a path, an object and a
// build ID.
func logGroups(l *layout, text []byte, at int, fr *judge.Frame, look sgr.State) {
	if l.look != nil && fr.Number >= 0 && !inObject(fr) {
		for _, group := range []string{" /", " (/", " (BuildId"} {
			if i := bytes.Index(text[at:], []byte(group)); i >= 0 {
				logFrame(l, text, at, at+i, fr, look)
				at += i
				l.look.Breakable(len(l.buf))
			}
		}
	}
	logFrame(l, text, at, len(text), fr, look)
}

// logKernel is logFrame for a frame of a kernel up to its first edit: the line may be broken before
// the function and before its module. It returns the offset after the text that it has laid out: at,
// if the frame is not one of a kernel.
func logKernel(l *layout, text []byte, at int, fr *judge.Frame, look sgr.State) int {
	if l.look == nil || fr.Kernel == nil || len(fr.Edits) == 0 {
		return at
	}
	end := fr.Edits[0].From
	l.look.Breakable(len(l.buf))
	if i := bytes.IndexByte(text[at:end], '['); i > 0 {
		logFrame(l, text, at, at+i-1, fr, look) // without the blank before the module
		l.look.Breakable(len(l.buf))
		at += i - 1
	}
	logFrame(l, text, at, end, fr, look)
	return end
}

// endsFrame reports whether rest, the text of the log after the last answer in a line with a frame,
// belongs to the frame: only groups in brackets, such as (/lib/libc.so.6+0x2b) (BuildId: aabb).
func endsFrame(rest []byte) bool {
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

// inJSON reports whether the part is JSON.
func inJSON(p dialect.Part) bool {
	return p == dialect.Strings || p == dialect.JSONFunc || p == dialect.JSONSource
}

// inObject reports whether the answer for a frame is a member of an object of JSON in its line.
func inObject(fr *judge.Frame) bool {
	return len(fr.Edits) > 0 && inJSON(fr.Edits[0].Part)
}

// breakAtBlank lets the current line of output be broken after its text so far, if the text ends
// with a blank or next begins with one.
func breakAtBlank(l *layout, next string) {
	if l.look != nil && (bytes.HasSuffix(l.buf, []byte(" ")) || strings.HasPrefix(next, " ")) {
		l.look.Breakable(len(l.buf))
	}
}
