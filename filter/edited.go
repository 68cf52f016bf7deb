package filter

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/sgr"
)

// edited lays out text, the line of fr, with the i-th frame of the answer a. It applies the frame's
// edits or, with KeepRaw, appends the answer. If a is nil or the line already has the name, the
// line gets no answer. In all cases, number replaces the frame's number.
func (c *locator) edited(text []byte, fr *judge.Frame, number int, a *answer, i int) {
	f := c.f
	at := 0
	d := fr.Digits
	renumbered := d.To > 0 && number != fr.Number
	if renumbered && i > 0 {
		at = layout.Ended(text[:d.From])
	}
	if f.layout.Display != nil && at <= fr.Start {
		f.layout.LogBytes(text[at:fr.Start])
		at = fr.Start
		f.layout.Display.FrameBegins(len(f.layout.Buf), layout.LocatedIndent)
	}
	if renumbered {
		f.layout.LogFrame(text, at, d.From, fr, f.layout.Beside(fr))
		f.layout.Number(number)
		at = d.To
	}
	if a == nil {
		c.unanswered(text, at, fr)
		return
	}
	t := a.text.frame(i)
	// the line already has the name
	if t.File == "" && fr.Symbol.Name != "" && t.Function() == fr.Symbol.Name && !layout.InObject(fr) {
		f.layout.LogBytes(text[at:])
		return
	}
	if f.o.Dialects.KeepRaw && !layout.InObject(fr) {
		end := len(bytes.TrimRight(text, " \t"))
		f.layout.LogBytes(text[at:end])
		if !bytes.HasSuffix(text[:end], []byte(" "+a.text.functionAndLine(i))) { // the log was filtered before
			f.layout.Mark(" ")
			f.layout.FunctionAndLine(t)
		}
		f.layout.LogBytes(text[end:])
		return
	}
	if d := fr.Depth; d.To > 0 && i < len(a.text.cuts)-1 {
		f.layout.LogFrame(text, at, d.From, fr, f.layout.Beside(fr))
		at = d.To
		f.layout.Mark(".")
		f.layout.Number(i + 1)
		if i < 9 {
			f.layout.Mark(" ")
		}
	}
	if d := fr.First; d.To > 0 && i > 0 {
		f.layout.LogFrame(text, at, d.From, fr, f.layout.Beside(fr))
		at = d.To
		f.layout.Mark(fr.Later)
	}
	at = c.edits(text, at, fr, a, i)
	if layout.EndsFrame(text[at:]) {
		if at < len(text) {
			f.layout.BreakAtBlank(string(text[at : at+1]))
		}
		f.layout.LogGroups(text, at, fr, f.layout.Beside(fr))
	} else {
		f.layout.Display.TextBegins(len(f.layout.Buf))
		f.layout.LogBytes(text[at:])
	}
}

// unanswered lays out the rest of a line, text[at:], whose frame has no answer.
func (c *locator) unanswered(text []byte, at int, fr *judge.Frame) {
	l := &c.f.layout
	look := l.State
	if !fr.Named && (fr.Number >= 0 || !fr.Optional && !layout.InObject(fr) && layout.EndsFrame(c.textAfter(text, fr))) {
		look = l.State.WithForeground(sgr.Yellow)
	}
	at = l.LogKernel(text, at, fr, look)
	l.LogGroups(text, at, fr, look)
}

// textAfter returns the part of text, the line of fr, that follows the frame's last edit.
func (c *locator) textAfter(text []byte, fr *judge.Frame) []byte {
	if n := len(fr.Edits); n > 0 {
		return text[fr.Edits[n-1].To:]
	}
	return text
}

// edits lays out text[at:] up to the last edit of fr, with the edits applied, and returns the
// offset after that edit. It skips edits without effect for the i-th frame of the answer a.
func (c *locator) edits(text []byte, at int, fr *judge.Frame, a *answer, i int) int {
	f := c.f
	t := a.text.frame(i)
	at = f.layout.LogKernel(text, at, fr, f.layout.Beside(fr))
	for k := range fr.Edits {
		e := &fr.Edits[k]
		if t.File == "" && e.Part >= dialect.AtLine || e.Part == dialect.BareFunc && t.Name == layout.UnknownFunction ||
			e.Part == dialect.Inlined && !t.Inlined || e.Part == dialect.Other && t.Name == fr.Symbol.Name || e.Part == dialect.NothingInCalls && i == 0 ||
			e.Part == dialect.Rename && c.namesFunction(text[e.From:e.To], &t) {
			continue
		}
		f.layout.LogFrame(text, at, e.From, fr, f.layout.Beside(fr))
		at = e.To
		if !layout.InJSON(e.Part) {
			f.layout.BreakAtBlank(e.Before)
		}
		begin, end := layout.AroundAnswer(text[e.From:e.To])
		f.layout.Sequences(begin)
		switch {
		case layout.InJSON(e.Part):
			n, ok := 0, true
			if e.Part == dialect.JSONSource {
				n, ok = callNamed(c, fr, a)
			}
			if !ok {
				continue
			}
			f.layout.Buf = append(f.layout.Buf, e.Before...)
			c.json(e.Part, a, n)
			f.layout.Buf = append(f.layout.Buf, e.After...)
		case e.Part == dialect.Callers:
			f.layout.Dim(e.Before)
			c.callers(a)
			f.layout.Dim(e.After)
		default:
			f.layout.Dim(e.Before)
			f.layout.Part(e.Part, &t)
			f.layout.Dim(e.After)
		}
		f.layout.Sequences(end)
	}
	return at
}

// simple reports whether simpleCalls may lay out the calls of a frame. The frame must be a
// sanitizer's, and nothing in its line may be coloured or escaped.
func (c *locator) simple(text []byte, fr *judge.Frame) bool {
	return fr.Key != 0 && len(fr.Edits) == 2 && fr.Edits[0].Part == dialect.BareFunc && fr.Edits[1].Part == dialect.AtSource &&
		fr.Edits[0].After == " " && fr.Edits[0].To == fr.Edits[1].From && isPlain(c.f, text)
}

// isPlain reports whether text, a line of the log, and the answers in it are laid out unchanged.
func isPlain(f *lineFilter, text []byte) bool {
	l := &f.layout
	return l.Display == nil && !f.o.Dialects.KeepRaw && !l.Terminal && !l.Links &&
		(f.o.Color == ColorKeep || f.o.Color != ColorAlways && bytes.IndexByte(text, esc) < 0)
}

// simpleCalls is a fast path of framePerCall for sanitizers' frames: a log may have millions of
// them. It uses edited for each call without a simple text, such as a call without a line.
func (c *locator) simpleCalls(text, between []byte, fr *judge.Frame, number int, a *answer) {
	f, r := c.f, &a.text
	name, at := &fr.Edits[0], &fr.Edits[1]
	before, after := text[:fr.Digits.From], text[at.To:]
	var space [48]byte // " 0x7f3a5c2d1b80 in "
	address := append(append(space[:0], text[fr.Digits.To:name.From]...), name.Before...)
	for i := range r.cuts {
		if i > 0 {
			f.layout.NextLine(between)
			f.printLarge()
		}
		f.records.addFrame(len(f.layout.Buf), i)
		call := r.simpleCall(i)
		if call == "" {
			c.edited(text, fr, number+i, a, i)
			continue
		}
		b := append(f.layout.Buf, before...)
		b = layout.AppendSmall(b, uint64(number+i))
		b = append(b, address...)
		f.layout.Buf = append(r.appendSimpleCall(b, call, i), after...)
	}
}

// appendSimpleCall appends call, the result of simpleCall for the i-th call, but leaves out a "./"
// before the file.
func (r *rendered) appendSimpleCall(b []byte, call string, i int) []byte {
	if file := int(r.cuts[i].name - r.cuts[i].start); strings.HasPrefix(call[file:], " ./") {
		b = append(b, call[:file+1]...)
		call = call[file+len(" ./"):]
	}
	return append(b, call...)
}

// simpleCall returns the function and the line of the i-th call if they are laid out unchanged,
// except for a "./" before the file. Otherwise it returns "".
func (r *rendered) simpleCall(i int) string {
	cut := &r.cuts[i]
	if cut.file == cut.name || r.text[cut.file+1] == '0' {
		return ""
	}
	call := r.text[cut.start:cut.col]
	if call[0] == '?' || strings.HasPrefix(call, "__") {
		return ""
	}
	return call
}

// simpleMarked is a fast path of markedCalls, for logs with many kernel frames. It returns false
// and lays out nothing if a call has no line number, or if the line needs the general code, as with
// colours.
func simpleMarked(f *lineFilter, text, between []byte, fr *judge.Frame, r *rendered) bool {
	if len(fr.Edits) != 1 || fr.Start > maxRepeat || f.printsSources || !isPlain(f, text) || bytes.IndexByte(text, esc) >= 0 {
		return false
	}
	e := &fr.Edits[0]
	if e.Part != dialect.AtLine || e.Before != " " || e.After != "" || fr.Digits.To+fr.Depth.To+fr.First.To > 0 {
		return false
	}
	for i := range r.cuts {
		if r.cuts[i].file == r.cuts[i].name {
			return false
		}
	}
	last := len(r.cuts) - 1
	for i := range r.cuts[:last] {
		cut := &r.cuts[i]
		f.records.addFrame(len(f.layout.Buf), i)
		b := append(f.layout.Buf, text[:fr.Start]...)
		b = append(b, r.text[cut.start:cut.line]...)
		f.layout.Buf = append(b, " [inline]"...)
		f.layout.NextLine(between)
	}
	cut := &r.cuts[last]
	f.records.addFrame(len(f.layout.Buf), last)
	b := append(f.layout.Buf, text[:e.From]...)
	b = append(b, r.text[cut.name:cut.line]...)
	f.layout.Buf = append(b, text[e.To:]...)
	return true
}

// callers lays out the calls around the innermost call, each after " inlined into ".
func (c *locator) callers(a *answer) {
	f := c.f
	for i := 1; i < len(a.text.cuts); i++ {
		f.layout.Dim(" inlined into ")
		f.layout.FunctionAndLine(a.text.frame(i))
	}
}

// callNamed returns the index in a of the call that a JSON object names, or the innermost call if
// the object has no name. If the name belongs only to a symbol at the address, it returns the
// outermost call. ok is false if neither a call nor such a symbol has the name.
func callNamed(c *locator, fr *judge.Frame, a *answer) (n int, ok bool) {
	name := fr.Symbol.Name
	if name == "" {
		return 0, true
	}
	last := len(a.text.cuts) - 1
	for n = range last + 1 {
		t := a.text.frame(n)
		bare, _ := report.Unversioned(t.Name)
		if bare == name || report.WithoutCloneSuffix(name) == bare || c.namesFunction([]byte(name), &t) {
			return n, true
		}
	}
	c.f.examine(a.mod, fr.NamesSymbolAt(a.rel, &ok))
	return last, ok
}

// json lays out a part of an answer in JSON, without colours. The object describes the n-th call.
func (c *locator) json(p dialect.Part, a *answer, n int) {
	b := c.f.layout.Buf
	switch t := a.text.frame(n); p {
	case dialect.Strings:
		b = c.calls(b, a, 0, len(a.text.cuts))
	case dialect.JSONFunc:
		b, _ = escape.AppendString(b, []byte(t.Function()))
	case dialect.JSONSource:
		b, _ = escape.AppendString(append(b, `"source_file": `...), []byte(t.File))
		b = append(append(b, `, "source_line": `...), t.Line...)
		if all := len(a.text.cuts); n < all-1 {
			b = append(c.calls(append(b, `, "inlined_by": [`...), a, n+1, all), ']')
		}
		if n > 0 {
			b = append(c.calls(append(b, `, "inlined": [`...), a, 0, n), ']')
		}
	}
	c.f.layout.Buf = b
}

// calls appends the calls from index i up to end-1 as JSON strings, innermost first. Each has the
// function, with its file and line if they are known.
func (c *locator) calls(b []byte, a *answer, i, end int) []byte {
	for first := i; i < end; i++ {
		t := a.text.frame(i)
		c.scratch = append(c.scratch[:0], t.Name...)
		if t.File != "" {
			c.scratch = append(append(append(append(c.scratch, " at "...), t.File...), ':'), t.Line...)
		}
		if i > first {
			b = append(b, ',')
		}
		b, _ = escape.AppendString(b, c.scratch)
	}
	return b
}

// namesFunction reports whether logged, a name in the log, is the name of the function in t: plain,
// mangled, with a version, or from an earlier run. It returns true if the function in t is unknown.
func (c *locator) namesFunction(logged []byte, t *layout.Frame) bool {
	name, _, _ := strings.Cut(string(logged), "@")
	return t.Name == layout.UnknownFunction || string(logged) == t.Name || name == t.Function() || c.f.o.Symbolizer.Demangle(name) == t.Function()
}
