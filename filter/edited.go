package filter

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/sgr"
)

// edited lays out the line text with the i-th frame of the answer a in the places of the frame's
// edits, or unchanged if a is nil. number replaces the frame's number.
func (c *locator) edited(text []byte, fr *judge.Frame, number int, a *answer, i int) {
	f := c.f
	at := 0
	d := fr.Digits
	renumbered := d.To > 0 && number != fr.Number
	if renumbered && i > 0 {
		at = ended(text[:d.From])
	}
	if f.look != nil && at <= fr.Start {
		f.logBytes(text[at:fr.Start])
		at = fr.Start
		f.look.FrameBegins(len(f.buf), locatedIndent)
	}
	if renumbered {
		logFrame(&f.layout, text, at, d.From, fr, beside(&f.layout, fr))
		c.number(number)
		at = d.To
	}
	if a == nil {
		look := f.state
		if !fr.Named && (fr.Number >= 0 || !fr.Optional && !inObject(fr) && endsFrame(c.rest(text, fr))) {
			look = f.state.WithForeground(sgr.Yellow)
		}
		at = logKernel(&f.layout, text, at, fr, look)
		logGroups(&f.layout, text, at, fr, look)
		return
	}
	t := a.text.frame(i)
	if t.file == "" && fr.Symbol.Name != "" && t.function() == fr.Symbol.Name && !inObject(fr) { // the line has it already
		f.logBytes(text[at:])
		return
	}
	if f.o.Dialects.KeepRaw && !inObject(fr) {
		end := len(bytes.TrimRight(text, " \t"))
		f.logBytes(text[at:end])
		if !bytes.HasSuffix(text[:end], []byte(" "+a.text.functionAndLine(i))) { // the log was filtered before
			f.mark(" ")
			f.functionAndLine(t)
		}
		f.logBytes(text[end:])
		return
	}
	if d := fr.Depth; d.To > 0 && i < len(a.text.cuts)-1 {
		logFrame(&f.layout, text, at, d.From, fr, beside(&f.layout, fr))
		at = d.To
		f.mark(".")
		c.number(i + 1)
		if i < 9 {
			f.mark(" ")
		}
	}
	if d := fr.First; d.To > 0 && i > 0 {
		logFrame(&f.layout, text, at, d.From, fr, beside(&f.layout, fr))
		at = d.To
		f.mark(fr.Later)
	}
	at = c.edits(text, at, fr, a, i)
	if endsFrame(text[at:]) {
		if at < len(text) {
			breakAtBlank(&f.layout, string(text[at:at+1]))
		}
		logGroups(&f.layout, text, at, fr, beside(&f.layout, fr))
	} else {
		f.look.TextBegins(len(f.buf))
		f.logBytes(text[at:])
	}
}

// locatedIndent is the number of columns by which the further lines of a raw frame are indented.
const locatedIndent = 4

// rest returns the text of the log after the last answer in a line with a frame.
func (c *locator) rest(text []byte, fr *judge.Frame) []byte {
	if n := len(fr.Edits); n > 0 {
		return text[fr.Edits[n-1].To:]
	}
	return text
}

// edits lays out text from at on up to the last edit of a frame, with the i-th frame of the answer
// a, and returns the offset after the last edit.
func (c *locator) edits(text []byte, at int, fr *judge.Frame, a *answer, i int) int {
	f := c.f
	t := a.text.frame(i)
	at = logKernel(&f.layout, text, at, fr, beside(&f.layout, fr))
	for k := range fr.Edits {
		e := &fr.Edits[k]
		if t.file == "" && e.Part >= dialect.AtLine || e.Part == dialect.BareFunc && t.name == unknownFunc ||
			e.Part == dialect.Inlined && !t.inlined || e.Part == dialect.Other && t.name == fr.Symbol.Name || e.Part == dialect.NothingInCalls && i == 0 ||
			e.Part == dialect.Rename && c.names(text[e.From:e.To], &t) {
			continue
		}
		logFrame(&f.layout, text, at, e.From, fr, beside(&f.layout, fr))
		at = e.To
		if !inJSON(e.Part) {
			breakAtBlank(&f.layout, e.Before)
		}
		begin, end := colors(text[e.From:e.To])
		c.sequences(begin)
		switch {
		case inJSON(e.Part):
			n, ok := 0, true
			if e.Part == dialect.JSONSource {
				n, ok = callNamed(c, fr, a)
			}
			if !ok {
				continue
			}
			f.buf = append(f.buf, e.Before...)
			c.json(e.Part, a, n)
			f.buf = append(f.buf, e.After...)
		case e.Part == dialect.Callers:
			f.dim(e.Before)
			c.callers(a)
			f.dim(e.After)
		default:
			f.dim(e.Before)
			c.part(e.Part, &t)
			f.dim(e.After)
		}
		c.sequences(end)
	}
	return at
}

// simple reports whether simpleLine may lay out lines for a frame: the frame is that of a
// sanitizer, and nothing in its line is coloured or escaped.
func (c *locator) simple(text []byte, fr *judge.Frame) bool {
	return fr.Key != 0 && len(fr.Edits) == 2 && fr.Edits[0].Part == dialect.BareFunc && fr.Edits[1].Part == dialect.AtSource &&
		fr.Edits[0].After == " " && fr.Edits[0].To == fr.Edits[1].From && isPlain(c.f, text)
}

// isPlain reports whether answers in the line text are laid out as they are, and the text around them too.
func isPlain(f *lineFilter, text []byte) bool {
	l := &f.layout
	return l.look == nil && !f.o.Dialects.KeepRaw && !l.terminal && !l.links &&
		(l.color == ColorKeep || l.color != ColorAlways && bytes.IndexByte(text, esc) < 0)
}

// simpleLine is a fast path of edited for answers with a function and a line: a log may have
// millions of them. For other answers it returns false and lays out nothing.
func (c *locator) simpleLine(text []byte, fr *judge.Frame, number int, r *rendered, i int) bool {
	cut := &r.cuts[i]
	if cut.file == cut.name {
		return false
	}
	function, file := r.text[cut.start:cut.name], r.text[cut.name:cut.col]
	if function[0] == '?' || strings.HasPrefix(function, "__") || r.text[cut.file+1] == '0' {
		return false
	}
	name, at := &fr.Edits[0], &fr.Edits[1]
	b := append(c.f.buf, text[:fr.Digits.From]...)
	b = appendSmall(b, uint64(number))
	b = append(b, text[fr.Digits.To:name.From]...)
	b = append(b, name.Before...)
	b = append(b, function...)
	if strings.HasPrefix(file, " ./") {
		b, file = append(b, ' '), file[len(" ./"):]
	}
	b = append(b, file...)
	c.f.buf = append(b, text[at.To:]...)
	return true
}

// simpleMarked is a fast path of marked if nothing is coloured and all calls have a line: a log may have
// many frames of a kernel. For others it returns false and lays out nothing.
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
		f.records.addFrame(len(f.buf), i)
		b := append(f.buf, text[:fr.Start]...)
		b = append(b, r.text[cut.start:cut.line]...)
		f.buf = append(b, " [inline]"...)
		f.nextLine(between)
	}
	cut := &r.cuts[last]
	f.records.addFrame(len(f.buf), last)
	b := append(f.buf, text[:e.From]...)
	b = append(b, r.text[cut.name:cut.line]...)
	f.buf = append(b, text[e.To:]...)
	return true
}

// number lays out the number of a frame, or a depth.
func (c *locator) number(n int) {
	c.scratch = strconv.AppendInt(c.scratch[:0], int64(n), 10)
	c.f.dim(string(c.scratch))
}

// callers lays out the calls around the innermost one.
func (c *locator) callers(a *answer) {
	f := c.f
	for i := 1; i < len(a.text.cuts); i++ {
		f.dim(" inlined into ")
		f.functionAndLine(a.text.frame(i))
	}
}

// callNamed returns the index of the call in a that an object of JSON with a name of its own is about, and
// of the innermost one if it has none. It returns false if the name is that of another function.
func callNamed(c *locator, fr *judge.Frame, a *answer) (n int, ok bool) {
	name := fr.Symbol.Name
	if name == "" {
		return 0, true
	}
	last := len(a.text.cuts) - 1
	for n = range last + 1 {
		t := a.text.frame(n)
		bare, _ := report.Unversioned(t.name)
		if bare == name || report.WithoutCloneSuffix(name) == bare || c.names([]byte(name), &t) {
			return n, true
		}
	}
	c.f.examine(a.mod, fr.NamesSymbolAt(a.rel, &ok))
	return last, ok
}

// json lays out a part of an answer in JSON, without colours. n is the index of the call that the object
// is about.
func (c *locator) json(p dialect.Part, a *answer, n int) {
	b := c.f.buf
	switch t := a.text.frame(n); p {
	case dialect.Strings:
		b = c.calls(b, a, 0, len(a.text.cuts))
	case dialect.JSONFunc:
		b, _ = escape.AppendString(b, []byte(t.function()))
	case dialect.JSONSource:
		b, _ = escape.AppendString(append(b, `"source_file": `...), []byte(t.file))
		b = append(append(b, `, "source_line": `...), t.line...)
		if all := len(a.text.cuts); n < all-1 {
			b = append(c.calls(append(b, `, "inlined_by": [`...), a, n+1, all), ']')
		}
		if n > 0 {
			b = append(c.calls(append(b, `, "inlined": [`...), a, 0, n), ']')
		}
	}
	c.f.buf = b
}

// calls appends the calls at an address from the i-th up to the end-th, innermost first, as strings of
// JSON.
func (c *locator) calls(b []byte, a *answer, i, end int) []byte {
	for first := i; i < end; i++ {
		t := a.text.frame(i)
		c.scratch = append(c.scratch[:0], t.name...)
		if t.file != "" {
			c.scratch = append(append(append(append(c.scratch, " at "...), t.file...), ':'), t.line...)
		}
		if i > first {
			b = append(b, ',')
		}
		b, _ = escape.AppendString(b, c.scratch)
	}
	return b
}

// part lays out a part of an answer.
func (c *locator) part(p dialect.Part, t *frameText) {
	f := c.f
	switch p {
	case dialect.Nothing, dialect.NothingInCalls:
		return
	case dialect.Name, dialect.Rename:
		f.function(t.name)
	case dialect.Decimal:
		f.function(t.decimal())
	case dialect.Spaced:
		f.function(t.spaced())
	case dialect.Func, dialect.FuncAt, dialect.Inlined, dialect.Other:
		f.function(t.function())
	case dialect.BareFunc:
		f.function(bareFunction(t.function()))
	case dialect.AtBase:
		f.source(t, t.file[strings.LastIndexByte(t.file, '/')+1:], ":", false)
	case dialect.AtSource:
		file := strings.TrimPrefix(t.file, "./")
		if t.line == "0" {
			f.value(file)
			return
		}
		f.source(t, file, ":", true)
	case dialect.AtSpaced:
		f.source(t, t.file, " : ", false)
	default:
		f.source(t, t.file, ":", p == dialect.AtColumn)
	}
}

// bareFunction returns the name of the function that name, an interceptor of a sanitizer, stands
// for: sanitizers print that. For other functions it returns name.
func bareFunction(name string) string {
	if !strings.HasPrefix(name, "__") {
		return name
	}
	for _, prefix := range []string{"___interceptor_", "__interceptor_trampoline_", "__interceptor_"} {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			return bare
		}
	}
	return name
}

// decimal returns the name of the function, with a decimal distance from its beginning if the
// answer is from a symbol.
func (t *frameText) decimal() string {
	name := t.function()
	if len(name) == len(t.name) {
		return name
	}
	n, err := strconv.ParseUint(t.name[len(name)+len("+0x"):], 16, 64)
	if err != nil {
		return t.name
	}
	return name + "+" + strconv.FormatUint(n, 10)
}

// spaced returns the name of the function, with blanks around the "+" before the distance from its
// beginning.
func (t *frameText) spaced() string {
	name := t.function()
	if distance := t.name[len(name):]; distance != "" {
		return name + " + " + distance[len("+"):]
	}
	return name
}

// inlined lays out a line for one of the functions at the address of a frame. It repeats the text
// before the frame.
func (c *locator) inlined(text []byte, fr *judge.Frame, t frameText, before, between, after string) {
	f := c.f
	c.beneath(text, fr, 0)
	f.look.FrameBegins(len(f.buf), locatedIndent)
	f.mark(before)
	f.look.Breakable(len(f.buf))
	f.function(t.name)
	if t.file != "" {
		f.look.Breakable(len(f.buf))
		f.mark(between)
		c.part(dialect.AtLine, &t)
	}
	f.mark(after)
	c.endBeneath(text, fr)
}

// inlinedFrom lays out the line of ClickHouse for the depth-th inlined call at the address of a
// frame.
func (c *locator) inlinedFrom(text []byte, fr *judge.Frame, t frameText, depth int) {
	f := c.f
	c.beneath(text, fr, 0)
	f.look.FrameBegins(len(f.buf), locatedIndent)
	c.number(fr.Number)
	f.mark(".")
	c.number(depth)
	f.mark(". inlined from ")
	if t.file != "" {
		f.look.Breakable(len(f.buf))
		c.part(dialect.AtLine, &t)
		f.mark(": ")
	}
	f.look.Breakable(len(f.buf))
	f.function(t.name)
	c.endBeneath(text, fr)
}

// names reports whether logged, a name that the producer has found, is that of the function t:
// mangled, with a version, or as an earlier run has printed it.
func (c *locator) names(logged []byte, t *frameText) bool {
	name, _, _ := strings.Cut(string(logged), "@")
	return t.name == unknownFunc || string(logged) == t.name || name == t.function() || c.f.o.Symbolizer.Demangle(name) == t.function()
}

// placeBelow lays out a line with file and line of a call, in the column in which Rust prints them.
func (c *locator) placeBelow(text, eol []byte, fr *judge.Frame, t frameText) {
	f := c.f
	if t.file == "" || t.line == "0" { // Rust prints no place without a line
		return
	}
	f.nextLine(eol)
	c.beneath(text, fr, dialect.PlaceColumn)
	f.mark("at ")
	c.part(dialect.AtColumn, &t)
	c.endBeneath(text, fr)
	f.printLarge()
}

// beneath lays out the text before a frame, and n blanks.
func (c *locator) beneath(text []byte, fr *judge.Frame, n int) {
	f := c.f
	if fr.Start <= maxRepeat {
		f.logBytes(text[ended(text[:fr.Start]):fr.Start])
	}
	f.mark(strings.Repeat(" ", min(max(n, 0), maxRepeat)))
}

// endBeneath ends a line that beneath has begun: a colour that the text before the frame has begun
// ends as it does in the line of the frame.
func (c *locator) endBeneath(text []byte, fr *judge.Frame) {
	if len(fr.Edits) > 0 && fr.Start <= maxRepeat && bytes.IndexByte(text[:fr.Start], esc) >= 0 {
		c.sequences(dialect.Colors(text[fr.Edits[len(fr.Edits)-1].To:]))
	}
}

// ended returns the end of the colours with which a line begins if the last one ends them all before
// there is text: they end the colour of the line before, and are not for lines that are added.
func ended(text []byte) (end int) {
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

// colors returns the colours within text that an answer replaces: those that are to be before the
// answer, and the last one, which ends the others.
func colors(text []byte) (begin, end [][]byte) {
	all := dialect.Colors(text)
	if n := len(all) - 1; n > 0 {
		return all[:n], all[n:]
	}
	return all, nil
}

// sequences lays out escape sequences of the log.
func (c *locator) sequences(all [][]byte) {
	for _, s := range all {
		c.f.logBytes(s)
	}
}
