package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/judge"
)

// A bufferedLine is a held line of the trace.
type bufferedLine struct {
	from, to int // in tracer.text
	frames   []judge.Frame
	upTo     int  // number of frames in this and all earlier held lines
	listed   bool // the next line is already this line's listing: the log was filtered before
	reading
	again    *repeat // the repeat that begins with this line, or nil; if set, frames is nil
	repeated bool    // the line is part of a repeat, or was
}

// lacksFrame reports whether l has no frame. A repeated line has frames, which are kept in its
// repeat.
func (l *bufferedLine) lacksFrame() bool { return len(l.frames) == 0 && !l.repeated }

// dropAnswered removes the frames of the last held line if b, the next line, has the answer for one
// of these frames. The log was then filtered before, or the program prints its frames twice. If b
// has only the file and line of a frame, or its build ID, the frame becomes Named.
func dropAnswered(held []bufferedLine, b []byte) {
	if len(held) == 0 {
		return
	}
	last := &held[len(held)-1]
	for i := range last.frames {
		f := &last.frames[i]
		f.Named = f.Named || f.Placed(b)
		f.Continue(b)
		if f.Below != "" && len(b) > f.Start && bytes.HasPrefix(b[f.Start:], []byte(f.Below)) || f.Repeated(b) {
			last.frames = nil
			return
		}
	}
}
