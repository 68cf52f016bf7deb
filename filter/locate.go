package filter

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/dialect"
)

// A locator lays out lines with frames of raw backtraces.
type locator struct {
	f       *lineFilter
	modules map[cacheModule]*module // by name and build ID, so that each is known to the Cache

	// The stack whose frames are renumbered, because its producer counts inlined calls.
	number int // of its last frame
	added  int // frames that inlined calls have added
}

const maxLocated = 4096 // modules of raw backtraces that are kept

// line prints the current line, which has frames.
func (c *locator) line(text, eol []byte, frames []dialect.Frame) {
	f := c.f
	if len(frames) == 1 {
		c.frameLine(text, eol, &frames[0])
		return
	}
	f.logBytes(text)
	for i := range frames {
		c.below(text, eol, &frames[i])
	}
	f.endLine(eol)
}

// answer returns the answer for a frame, nil if it is not located.
func (c *locator) answer(fr *dialect.Frame) *answer {
	f := c.f
	p := &fr.Place
	if p.Err != nil {
		f.recordPlace(fr)
		return nil
	}
	name, id := fr.Module, fr.ID
	if p.Image != nil {
		id = p.Image.ID
		if id.IsZero() {
			name = p.Image.Path
		}
	}
	a := &f.last
	*a = answer{addr: p.Addr, rel: p.Addr, mod: c.module(name, id)}
	f.completeAnswer(a, exactAddress)
	return a
}

// module returns the module of this name and build ID.
func (c *locator) module(name string, id buildid.ID) *module {
	k := cacheModule{id, name}
	m := c.modules[k]
	if m == nil {
		if c.modules == nil || len(c.modules) >= maxLocated {
			c.modules = make(map[cacheModule]*module)
		}
		m = newModule(0, id, name)
		c.modules[k] = m
	}
	return m
}

// frameLine prints the current line, which has one frame.
func (c *locator) frameLine(text, eol []byte, fr *dialect.Frame) {
	f := c.f
	number := c.renumbered(fr)
	a := c.answer(fr)
	start := len(f.buf)
	if a == nil || !a.hasText {
		c.edited(text, fr, number, nil)
		f.recordLocated(start, fr, a)
		f.endLine(eol)
		return
	}
	between := eol
	if len(between) == 0 {
		between = newline
	}
	n := len(a.text.cuts)
	switch fr.Inline {
	case dialect.InlineFrames:
		for i := range n {
			t := a.text.frame(i)
			c.edited(text, fr, number+i, &t)
			if i < n-1 {
				f.nextLine(between)
				f.printLarge()
			}
		}
		c.added += n - 1
	case dialect.InlineMarked:
		for i := range n - 1 {
			c.inlined(text, fr, a.text.frame(i), "", " ", " [inline]")
			f.nextLine(between)
		}
		t := a.text.frame(n - 1)
		c.edited(text, fr, number, &t)
	case dialect.InlinedByBefore:
		for i := n - 1; i > 0; i-- {
			c.inlined(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
			f.nextLine(between)
		}
		t := a.text.frame(0)
		c.edited(text, fr, number, &t)
	default:
		t := a.text.frame(0)
		c.edited(text, fr, number, &t)
		for i := 1; i < n && fr.Inline == dialect.InlinedBy; i++ {
			f.nextLine(between)
			c.inlined(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
			f.printLarge()
		}
	}
	f.recordLocated(start, fr, a)
	f.endLine(eol)
}

// renumbered returns the number of a frame in its stack, with the frames that inlined calls have
// added before it.
func (c *locator) renumbered(fr *dialect.Frame) int {
	if fr.Digits.To == 0 {
		return fr.Number
	}
	if fr.Number == 0 || fr.Number <= c.number {
		c.added = 0
	}
	c.number = fr.Number
	return fr.Number + c.added
}

// edited lays out the line text with the answer t in the places of the frame's edits, or as it is
// if t is nil. number takes the place of the frame's number.
func (c *locator) edited(text []byte, fr *dialect.Frame, number int, t *frameText) {
	f := c.f
	at := 0
	if d := fr.Digits; d.To > 0 && number != fr.Number {
		f.logBytes(text[:d.From])
		f.value(strconv.Itoa(number))
		at = d.To
	}
	if t != nil && f.o.Dialects.KeepRaw {
		end := len(bytes.TrimRight(text, " \t"))
		f.logBytes(text[at:end])
		f.mark(" ")
		f.functionAndLine(*t)
		at = end
	} else if t != nil {
		for i := range fr.Edits {
			e := &fr.Edits[i]
			if t.file == "" && e.Part >= dialect.AtLine {
				continue
			}
			f.logBytes(text[at:e.From])
			at = e.To
			f.mark(e.Before)
			c.part(e.Part, t)
			f.mark(e.After)
		}
	}
	f.logBytes(text[at:])
}

// part lays out a part of an answer.
func (c *locator) part(p dialect.Part, t *frameText) {
	f := c.f
	switch p {
	case dialect.Name:
		f.value(t.name)
	case dialect.Func:
		f.value(t.function())
	case dialect.AtBase:
		f.value(t.file[strings.LastIndexByte(t.file, '/')+1:])
	default:
		f.value(t.file)
	}
	if p < dialect.AtLine {
		return
	}
	f.mark(":")
	f.value(t.line)
	if p == dialect.AtColumn && t.col != "" {
		f.mark(":")
		f.value(t.col)
	}
}

// function returns the name of the function without the distance from its beginning.
func (t *frameText) function() string {
	if t.file == "" {
		if i := strings.LastIndex(t.name, "+0x"); i > 0 {
			return t.name[:i]
		}
	}
	return t.name
}

// inlined lays out a line for one of the functions at the address of a frame, after the text that
// is before the frame.
func (c *locator) inlined(text []byte, fr *dialect.Frame, t frameText, before, between, after string) {
	f := c.f
	if fr.Start <= maxRepeat {
		f.logBytes(text[:fr.Start])
	}
	f.mark(before)
	f.value(t.name)
	if t.file != "" {
		f.mark(between)
		c.part(dialect.AtLine, &t)
	}
	f.mark(after)
}

// below lays out the answer for a frame of a list on lines of its own.
func (c *locator) below(text, eol []byte, fr *dialect.Frame) {
	f := c.f
	a := c.answer(fr)
	start := len(f.buf)
	if a == nil || !a.hasText {
		f.recordLocated(start, fr, a)
		return
	}
	if len(eol) == 0 {
		eol = newline
	}
	for i := range a.text.cuts {
		f.nextLine(eol)
		before := "  (inlined by) "
		if i == 0 {
			before = fr.Below
		}
		c.inlined(text, fr, a.text.frame(i), before, " at ", "")
		f.printLarge()
	}
	f.recordLocated(start, fr, a)
}
