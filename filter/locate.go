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

	recent  recent           // answers by Frame.Key
	stacks  [maxStacks]stack // whose frames are renumbered, by the text before them
	scratch []byte
}

// A stack is one whose producer counts inlined calls as frames.
type stack struct {
	before uint64 // of the text before its frames
	number int    // of its last frame, as logged
	added  int    // frames that inlined calls have added
}

const maxStacks = 16 // a power of two; of processes whose lines are interleaved

const maxLocated = 4096 // modules of raw backtraces that are kept

// line prints the current line, which has frames.
func (c *locator) line(text, eol []byte, frames []dialect.Frame) {
	f := c.f
	if len(frames) == 1 && frames[0].Below == "" {
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
	if fr.Key != 0 && p.Image == nil {
		return c.keyed(fr)
	}
	name, id := fr.Module, fr.ID
	if p.Image != nil {
		id = p.Image.ID
		if id.IsZero() || p.Image.File != nil {
			name = p.Image.Path // the frame may have the title of a process, or a path of another machine
		}
	}
	a := &f.last
	*a = answer{addr: p.Addr, rel: p.Addr, mod: c.module(name, id)}
	f.completeAnswer(a, exactAddress)
	if a.hasText {
		f.rests.count(p.Verified)
	}
	return a
}

// keyed is answer for a frame whose line has its module, build ID and address. A hot frame needs no
// lock of the shared Cache.
func (c *locator) keyed(fr *dialect.Frame) *answer {
	f := c.f
	slot := c.recent.slot(fr.Key, exactAddress)
	if slot.addr == fr.Key && slot.epoch == c.recent.epoch && f.stillBest(&slot.text) {
		f.named++
		return &slot.answer
	}
	if turns := f.cached.turns.Load(); turns != c.recent.turns {
		c.recent = recent{epoch: 1, turns: turns}
		slot = c.recent.slot(fr.Key, exactAddress)
	}
	a := &f.last
	*a = answer{addr: fr.Place.Addr, rel: fr.Place.Addr, mod: c.module(fr.Module, fr.ID)}
	f.completeAnswer(a, exactAddress)
	if a.hasText {
		*slot = recentSlot{c.recent.epoch, exactAddress, fr.Key, *a}
	}
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
	stack := c.stackOf(text, fr)
	number := fr.Number + stack.added
	if fr.Named {
		c.edited(text, fr, number, nil, 0)
		f.endLine(eol)
		return
	}
	a := c.answer(fr)
	start := len(f.buf)
	if a == nil || !a.hasText {
		c.edited(text, fr, number, nil, 0)
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
		simple := c.simple(text, fr)
		for i := range n {
			if !simple || !c.simpleLine(text, fr, number+i, &a.text, i) {
				c.edited(text, fr, number+i, a, i)
			}
			if i < n-1 {
				f.nextLine(between)
				f.printLarge()
			}
		}
		stack.added += n - 1
	case dialect.InlineDotted:
		for i := range n {
			c.edited(text, fr, number, a, i)
			if i < n-1 {
				f.nextLine(between)
				f.printLarge()
			}
		}
	case dialect.InlineMarked:
		for i := range n - 1 {
			c.inlined(text, fr, a.text.frame(i), "", " ", " [inline]")
			f.nextLine(between)
		}
		c.edited(text, fr, number, a, n-1)
	case dialect.InlineNumbered:
		for i := range n - 1 {
			c.inlinedFrom(text, fr, a.text.frame(i), i)
			f.nextLine(between)
		}
		c.edited(text, fr, number, a, n-1)
	case dialect.InlinedByBefore:
		for i := n - 1; i > 0; i-- {
			c.inlined(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
			f.nextLine(between)
		}
		c.edited(text, fr, number, a, 0)
	default:
		c.edited(text, fr, number, a, 0)
		for i := 1; i < n && fr.Inline == dialect.InlinedBy; i++ {
			f.nextLine(between)
			c.inlined(text, fr, a.text.frame(i), "  (inlined by) ", " at ", "")
			f.printLarge()
		}
	}
	f.recordLocated(start, fr, a)
	f.endLine(eol)
}

// stackOf returns the stack of a frame. If its frames are not renumbered, no frame was added to it.
func (c *locator) stackOf(text []byte, fr *dialect.Frame) *stack {
	if fr.Digits.To == 0 {
		c.stacks[0] = stack{}
		return &c.stacks[0]
	}
	before := textBefore(text[:min(fr.Start, maxRepeat)])
	s := &c.stacks[1+before%(maxStacks-1)]
	if s.before != before || fr.Number <= s.number || fr.Named && fr.Number != s.number+1 {
		*s = stack{before: before}
	}
	s.number = fr.Number
	return s
}

// textBefore returns a hash of the text before a frame, which is the same for the frames of a stack:
// digits and blanks do not count, since they are of times or before numbers.
func textBefore(b []byte) (hash uint64) {
	for _, c := range b {
		if c != ' ' && (c < '0' || c > '9') {
			hash = (hash ^ uint64(c)) * 0x100000001b3 // FNV
		}
	}
	return hash
}

// edited lays out the line text with the i-th frame of the answer a in the places of the frame's
// edits, or as it is if a is nil. number takes the place of the frame's number.
func (c *locator) edited(text []byte, fr *dialect.Frame, number int, a *answer, i int) {
	f := c.f
	at := 0
	if d := fr.Digits; d.To > 0 && number != fr.Number {
		f.logBytes(text[:d.From])
		c.number(number)
		at = d.To
	}
	if a == nil {
		f.logBytes(text[at:])
		return
	}
	t := a.text.frame(i)
	if t.file == "" && fr.Symbol.Name != "" && t.function() == fr.Symbol.Name { // the line has it already
		f.logBytes(text[at:])
		return
	}
	if f.o.Dialects.KeepRaw {
		end := len(bytes.TrimRight(text, " \t"))
		f.logBytes(text[at:end])
		f.mark(" ")
		f.functionAndLine(t)
		f.logBytes(text[end:])
		return
	}
	if d := fr.Depth; d.To > 0 && i < len(a.text.cuts)-1 {
		f.logBytes(text[at:d.From])
		at = d.To
		f.mark(".")
		c.number(i + 1)
		if i < 9 {
			f.mark(" ")
		}
	}
	if d := fr.First; d.To > 0 && i > 0 {
		f.logBytes(text[at:d.From])
		at = d.To
		f.mark(fr.Later)
	}
	for i := range fr.Edits {
		e := &fr.Edits[i]
		if t.file == "" && e.Part >= dialect.AtLine || e.Part == dialect.BareFunc && t.name == unknownFunc ||
			e.Part == dialect.Inlined && !t.inlined {
			continue
		}
		f.logBytes(text[at:e.From])
		at = e.To
		f.mark(e.Before)
		if e.Part == dialect.Callers {
			c.callers(a)
		} else {
			c.part(e.Part, &t)
		}
		f.mark(e.After)
	}
	f.logBytes(text[at:])
}

// simple reports whether simpleLine may lay out lines for a frame: it is a sanitizer's, and nothing of
// its line is coloured or escaped.
func (c *locator) simple(text []byte, fr *dialect.Frame) bool {
	l := &c.f.layout
	return fr.Key != 0 && len(fr.Edits) == 2 && fr.Edits[0].Part == dialect.BareFunc && fr.Edits[1].Part == dialect.AtSource &&
		fr.Edits[0].After == " " && fr.Edits[0].To == fr.Edits[1].From && !c.f.o.Dialects.KeepRaw && !l.terminal &&
		(l.color == ColorKeep || l.color == ColorNever && bytes.IndexByte(text, esc) < 0)
}

// simpleLine is edited for a frame with a function and a line, of which nothing is left out: a log may
// have millions of them. It reports whether the answer is such a frame.
func (c *locator) simpleLine(text []byte, fr *dialect.Frame, number int, r *rendered, i int) bool {
	cut := &r.cuts[i]
	answer := r.text[cut.start:cut.col]
	if cut.file == cut.name || answer[0] == '_' || answer[0] == '?' || r.text[cut.name+1] == '.' || r.text[cut.file+1] == '0' {
		return false
	}
	name, at := &fr.Edits[0], &fr.Edits[1]
	b := append(c.f.buf, text[:fr.Digits.From]...)
	b = appendSmall(b, uint64(number))
	b = append(b, text[fr.Digits.To:name.From]...)
	b = append(b, name.Before...)
	b = append(b, answer...)
	c.f.buf = append(b, text[at.To:]...)
	return true
}

// number lays out the number of a frame, or a depth.
func (c *locator) number(n int) {
	c.scratch = strconv.AppendInt(c.scratch[:0], int64(n), 10)
	c.f.value(string(c.scratch))
}

// callers lays out the calls around the innermost one.
func (c *locator) callers(a *answer) {
	f := c.f
	for i := 1; i < len(a.text.cuts); i++ {
		f.mark(" inlined into ")
		f.functionAndLine(a.text.frame(i))
	}
}

// part lays out a part of an answer.
func (c *locator) part(p dialect.Part, t *frameText) {
	f := c.f
	switch p {
	case dialect.Nothing:
		return
	case dialect.Name:
		f.value(t.name)
		return
	case dialect.Decimal:
		f.value(t.decimal())
		return
	case dialect.Func, dialect.FuncAt, dialect.Inlined:
		f.value(t.function())
		return
	case dialect.BareFunc:
		f.value(bareFunction(t.function()))
		return
	case dialect.AtBase:
		f.value(t.file[strings.LastIndexByte(t.file, '/')+1:])
	case dialect.AtSource:
		f.value(strings.TrimPrefix(t.file, "./"))
		if t.line == "0" {
			return
		}
	default:
		f.value(t.file)
	}
	f.mark(":")
	f.value(t.line)
	if (p == dialect.AtColumn || p == dialect.AtSource) && t.col != "" {
		f.mark(":")
		f.value(t.col)
	}
}

// bareFunction returns the name of the function that an interceptor of a sanitizer stands for, which
// the sanitizers print in its place, or name itself.
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

// function returns the name of the function without the distance from its beginning.
func (t *frameText) function() string {
	if t.file == "" {
		if i := strings.LastIndex(t.name, "+0x"); i > 0 {
			return t.name[:i]
		}
	}
	return t.name
}

// decimal returns the name of the function, with a decimal distance from its beginning if the answer
// is from a symbol.
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

// inlinedFrom lays out the line of ClickHouse for the depth-th inlined call at the address of a frame.
func (c *locator) inlinedFrom(text []byte, fr *dialect.Frame, t frameText, depth int) {
	f := c.f
	if fr.Start <= maxRepeat {
		f.logBytes(text[:fr.Start])
	}
	c.number(fr.Number)
	f.mark(".")
	c.number(depth)
	f.mark(". inlined from ")
	if t.file != "" {
		c.part(dialect.AtLine, &t)
		f.mark(": ")
	}
	f.value(t.name)
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
