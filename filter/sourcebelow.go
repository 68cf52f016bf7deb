package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/symbolize"
)

// recordedFrame returns the i-th frame with its file in the form of debug information.
func (s *sources) recordedFrame(i int) symbolize.Frame {
	fr := s.frames[i]
	fr.File = s.recorded[i]
	return fr
}

// location returns the module and the module-relative address at which a was looked up.
func (a *answer) location() symbolize.Location {
	return symbolize.Location{ID: a.mod.buildID(), Name: a.mod.asked(), Addr: a.rel}
}

// sourceBelow lays out the source lines of the i-th frame of a. It skips a system frame, and a
// frame with the same source line as the previous frame. Before each source line it lays out eol
// and calls begin, which lays out the text before the frame. After the line it calls end.
func (f *lineFilter) sourceBelow(a *answer, i int, eol []byte, begin, end func()) {
	if !f.printsSources || !a.hasText || a.text.sources == nil || i >= len(a.text.recorded) || a.text.ofSystem(i) {
		return
	}
	fr := a.text.recordedFrame(i)
	if fr.File == "" || fr.Line == 0 {
		return
	}
	if f.snippets.Repeats(fr.File, fr.Line, f.of) {
		return
	}
	s := f.sourceOf(a.location(), &fr)
	for i, line := range s.Lines {
		f.snippets.Below(&f.layout, s.First+uint32(i), line, fr.Line, fr.Column, eol, begin, end)
		f.printLarge()
	}
}

// source lays out the source lines of the i-th frame of a below the frame's line.
func (c *locator) source(text, eol []byte, fr *judge.Frame, a *answer, i int) {
	// a JSON object or a SUMMARY line repeats a frame whose source lines are printed elsewhere
	if c.f.printsSources && !layout.InObject(fr) && !bytes.Contains(text, []byte("SUMMARY: ")) {
		c.f.sourceBelow(a, i, eol, func() { c.f.layout.Beneath(text, fr, 0) }, func() { c.f.layout.EndBeneath(text, fr) })
	}
}
