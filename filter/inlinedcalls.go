package filter

import (
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
)

// frameLines lays out the current line, whose frame has the answer a. It adds inlined calls in the
// order and form of the frame's producer.
func (c *locator) frameLines(text, between []byte, fr *judge.Frame, number int, a *answer) {
	f, last := c.f, len(a.text.cuts)-1
	switch fr.Inline {
	case dialect.InlineFrames:
		if !f.printsSources && c.simple(text, fr) { // checked here for the speed of hot frames
			c.simpleCalls(text, between, fr, number, a)
			return
		}
		c.framePerCall(text, between, fr, number, 1, a)
	case dialect.InlineDotted:
		c.framePerCall(text, between, fr, number, 0, a)
	case dialect.InlineMarked:
		if !simpleMarked(f, text, between, fr, &a.text) {
			c.markedCalls(text, between, fr, number, a)
		}
	case dialect.InlineNumbered:
		for i := range last {
			f.records.addFrame(len(f.layout.Buf), i)
			f.layout.NumberedCall(text, fr, a.text.frame(i), i)
			c.source(text, between, fr, a, i)
			f.layout.NextLine(between)
		}
		c.loggedFrame(text, between, fr, number, a, last)
	case dialect.InlinedByBefore:
		for i := last; i > 0; i-- {
			f.records.addFrame(len(f.layout.Buf), i)
			f.layout.InlinedCall(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
			c.source(text, between, fr, a, i)
			f.layout.NextLine(between)
		}
		c.loggedFrame(text, between, fr, number, a, 0)
	case dialect.InlineBelow:
		c.callsBelow(text, between, fr, number, a)
	default:
		c.callsAfter(text, between, fr, number, a)
	}
}

func (c *locator) markedCalls(text, between []byte, fr *judge.Frame, number int, a *answer) {
	f, last := c.f, len(a.text.cuts)-1
	for i := range last {
		f.records.addFrame(len(f.layout.Buf), i)
		f.layout.InlinedCall(text, fr, a.text.frame(i), "", " ", " [inline]")
		c.source(text, between, fr, a, i)
		f.layout.NextLine(between)
	}
	c.loggedFrame(text, between, fr, number, a, last)
}

// loggedFrame lays out the current line with the i-th call of the answer, followed by its source
// lines.
func (c *locator) loggedFrame(text, between []byte, fr *judge.Frame, number int, a *answer, i int) {
	c.f.records.addFrame(len(c.f.layout.Buf), i)
	c.edited(text, fr, number, a, i)
	c.source(text, between, fr, a, i)
}

// framePerCall lays out the current line once for each call, as frames whose numbers increase by
// step.
func (c *locator) framePerCall(text, between []byte, fr *judge.Frame, number, step int, a *answer) {
	f, n := c.f, len(a.text.cuts)
	for i := range n {
		f.records.addFrame(len(f.layout.Buf), i)
		c.edited(text, fr, number, a, i)
		number += step
		if f.layout.Display != nil {
			markLocated(f, fr, a, i, c.textAfter(text, fr))
		}
		c.source(text, between, fr, a, i)
		if i < n-1 {
			f.layout.NextLine(between)
			f.printLarge()
		}
	}
}

// callsBelow lays out the current line, with the functions of further calls below its function, in
// the same column. The file of each call is on the line after its function.
func (c *locator) callsBelow(text, between []byte, fr *judge.Frame, number int, a *answer) {
	f := c.f
	for i := range a.text.cuts {
		t := a.text.frame(i)
		if i > 0 {
			f.layout.NextLine(between)
		}
		f.records.addFrame(len(f.layout.Buf), i)
		if i == 0 {
			c.edited(text, fr, number, a, 0)
		} else {
			f.layout.Beneath(text, fr, fr.Edits[0].From-fr.Start)
			f.layout.Function(t.Function())
			f.layout.EndBeneath(text, fr)
		}
		f.layout.PlaceBelow(text, between, fr, t)
		f.printLarge()
		c.source(text, between, fr, a, i)
	}
}

// callsAfter lays out the current line, and a line for each further call if the producer prints
// such lines.
func (c *locator) callsAfter(text, between []byte, fr *judge.Frame, number int, a *answer) {
	f, n := c.f, len(a.text.cuts)
	f.records.addFrame(len(f.layout.Buf), 0)
	c.edited(text, fr, number, a, 0)
	if f.layout.Display != nil && (n == 1 || fr.Inline == dialect.InlinedBy) {
		markLocated(f, fr, a, 0, c.textAfter(text, fr))
	}
	c.source(text, between, fr, a, 0)
	if fr.Inline != dialect.InlinedBy {
		return
	}
	for i := 1; i < n; i++ {
		f.layout.NextLine(between)
		f.records.addFrame(len(f.layout.Buf), i)
		f.layout.InlinedCall(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
		if f.layout.Display != nil {
			markLocated(f, fr, a, i, nil)
		}
		c.source(text, between, fr, a, i)
		f.printLarge()
	}
}
