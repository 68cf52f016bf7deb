package filter

import (
	"bytes"
	"fmt"
	"strconv"
	"unique"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
)

type locator struct {
	f       *lineFilter
	modules map[cacheModule]*module // each module keeps its number in the Cache

	recent        recent           // answers by Frame.Key
	stacks        [maxStacks]stack // stacks with renumbered frames, by the text before the frames
	invented      inventedModules  // for Dialects.Elements
	firstInvented uint64           // number of the first invented module
	frames        []judge.Frame    // frames of the current line
	until         int64            // earliest expiry of an answer, in Unix nanoseconds; 0: never
	scratch       []byte
}

// A stack renumbers a list of frames in which inlined calls have numbers of their own. Each call
// that an answer adds increases the numbers of the later frames.
type stack struct {
	before uint64 // hash of the text before its frames; see textBefore
	number int    // number of its last frame, as logged
	added  int    // frames added by inlined calls
}

// number of stacks that are kept, since the lines of processes may alternate; stacks[0] is for
// frames without numbers
const maxStacks = 16

const maxLocated = 4096 // modules in raw backtraces that are remembered

func (c *locator) line(text, eol []byte, frames []judge.Frame) {
	f := c.f
	if fr := &frames[0]; fr.Data {
		if f.o.Dialects.Elements || f.o.Dialects.KeepRaw {
			f.layout.LogBytes(text)
		} else {
			c.variable(text, fr, c.module(cacheModule{id: fr.ID, name: fr.Module}))
		}
		f.endLine(eol)
		return
	}
	if f.o.Dialects.Elements {
		c.elementLine(text, eol, frames)
		return
	}
	if len(frames) == 1 && frames[0].Below == "" && !frames[0].Unframed {
		c.frameLine(text, eol, &frames[0])
		return
	}
	if frames[0].Below == "" {
		c.sentence(text, frames)
		f.endLine(eol)
		return
	}
	f.layout.LogBytes(text)
	for i := range frames {
		c.below(text, eol, &frames[i])
	}
	f.endLine(eol)
}

// answer returns the answer for a frame, or nil if the frame is not located.
func (c *locator) answer(fr *judge.Frame) *answer {
	c.f.elements++
	if err := fr.Place.Err; err != nil {
		if !fr.Optional {
			c.f.countPlace(err)
			c.f.recordPlace(fr)
		}
		return nil
	}
	a := locatedAnswer(c, fr)
	if until := a.text.until; until != 0 && (c.until == 0 || until < c.until) {
		c.until = until
	}
	c.f.countAnswer(OriginRaw, a)
	return a
}

func locatedAnswer(c *locator, fr *judge.Frame) *answer {
	f, p := c.f, &fr.Place
	if fr.Key != 0 && (p.Image == nil || fr.Kernel != nil) {
		return c.keyed(fr)
	}
	k := c.identity(fr)
	a := &f.last
	*a = answer{addr: p.Addr, rel: p.Addr, mod: c.module(k)}
	f.completeAnswer(a, exactAddress)
	if located := f.o.Dialects.Located; located != nil && p.Image != nil {
		located(p.Image.Path, p.Addr, p.Verified)
	}
	if a.hasText {
		f.proofs.count(p.Verified)
	}
	return a
}

// keyed returns the answer for a located frame with a Key. It returns a recent answer with this Key
// without locking the shared Cache.
func (c *locator) keyed(fr *judge.Frame) *answer {
	f := c.f
	slot := c.recent.slot(fr.Key, exactAddress)
	if c.isRecent(fr) {
		f.answered++
		f.proofs.count(fr.Place.Verified)
		return &slot.answer
	}
	if turns := f.cached.turns.Load(); turns != c.recent.turns {
		c.recent = recent{epoch: 1, turns: turns}
		slot = c.recent.slot(fr.Key, exactAddress)
	}
	a := &f.last
	*a = answer{addr: fr.Place.Addr, rel: fr.Place.Addr, mod: c.module(c.identity(fr))}
	f.completeAnswer(a, exactAddress)
	if a.hasText {
		f.proofs.count(fr.Place.Verified)
		*slot = recentSlot{c.recent.epoch, exactAddress, fr.Key, *a}
	}
	return a
}

// isRecent reports whether c.recent holds the current answer for fr. It returns false for a frame
// without a Key.
func (c *locator) isRecent(fr *judge.Frame) bool {
	if fr.Key == 0 {
		return false
	}
	slot := c.recent.slot(fr.Key, exactAddress)
	return slot.addr == fr.Key && slot.epoch == c.recent.epoch && c.f.stillBest(&slot.text)
}

// resolveAhead resolves the located frames of held lines on other processors, while the Filter
// prints the lines. The returned function ends this work.
func (c *locator) resolveAhead(held []bufferedLine) (end func()) {
	a := c.f.ahead
	if a == nil || a.block == nil || c.f.o.Dialects.Elements { // elements have no answers
		return func() {}
	}
	c.f.endAhead()
	a.frames = a.frames[:0]
	for i := range held {
		for k := range held[i].frames {
			if fr := &held[i].frames[k]; fr.Place.Err == nil && !fr.Data && !fr.Unframed && !fr.Named && !c.isRecent(fr) {
				a.addHeld(heldFrame{int64(i + 1), c.module(c.identity(fr)), fr.Place.Addr})
			}
		}
	}
	return a.beginHeld(c.f.space)
}

// forget drops the recent answers, which depend on the files of the current trace.
func (c *locator) forget() {
	if c.recent.slots != nil {
		c.recent = recent{epoch: 1, turns: c.recent.turns}
	}
}

func (c *locator) module(k cacheModule) *module {
	m := c.modules[k]
	if m == nil {
		if c.modules == nil || len(c.modules) >= maxLocated {
			c.modules = make(map[cacheModule]*module)
		}
		m = &module{binary: unique.Make(k)}
		c.modules[k] = m
	}
	return m
}

func (c *locator) frameLine(text, eol []byte, fr *judge.Frame) {
	f := c.f
	stack := c.stackOf(text, fr)
	number := fr.Number + stack.added
	if fr.Named {
		f.records.addFrame(len(f.layout.Buf), NoFrame)
		c.edited(text, fr, number, nil, 0)
		if f.layout.Display != nil {
			markLocated(f, fr, nil, 0, nil)
		}
		f.endLine(eol)
		return
	}
	a := c.answer(fr)
	start := len(f.layout.Buf)
	if a == nil || !a.hasText {
		f.records.addFrame(start, 0)
		c.edited(text, fr, number, nil, 0)
		if f.layout.Display != nil {
			markLocated(f, fr, a, 0, c.textAfter(text, fr))
		}
		f.recordLocated(start, fr, a)
		f.endLine(eol)
		return
	}
	between := eol
	if len(between) == 0 {
		between = newline
	}
	if i := c.keptCall(text, fr, a); i >= 0 {
		f.records.addFrame(start, i)
		c.edited(text, fr, number, a, i)
		f.recordLocated(start, fr, a)
		f.endLine(eol)
		return
	}
	c.frameLines(text, between, fr, number, a)
	if fr.Inline == dialect.InlineFrames {
		stack.added += len(a.text.cuts) - 1
	}
	f.recordLocated(start, fr, a)
	f.endLine(eol)
}

// keptCall returns the index of the call whose text already ends the current line, or -1. With
// KeepRaw, an earlier run may have printed a line for each call.
func (c *locator) keptCall(text []byte, fr *judge.Frame, a *answer) int {
	if !c.f.o.Dialects.KeepRaw || layout.InObject(fr) || len(a.text.cuts) < 2 {
		return -1
	}
	text = bytes.TrimRight(text, " \t")
	for i := range a.text.cuts {
		if bytes.HasSuffix(text, []byte(" "+a.text.functionAndLine(i))) {
			return i
		}
	}
	return -1
}

// stackOf returns the stack of a frame. A frame that is not renumbered gets an empty stack.
func (c *locator) stackOf(text []byte, fr *judge.Frame) *stack {
	if fr.Digits.To == 0 {
		c.stacks[0] = stack{}
		return &c.stacks[0]
	}
	before := textBefore(dialect.WithoutColors(text[:min(fr.Start, maxRepeat)]))
	return c.stackAfter(before, fr.Number, fr.Named)
}

// stackAfter returns the stack that the frame with this number continues, or an empty stack. The
// argument before is the result of textBefore for the frame's line. If the log already names the
// frame (named), only the next number continues a stack.
func (c *locator) stackAfter(before uint64, number int, named bool) *stack {
	s := &c.stacks[1+before%(maxStacks-1)]
	if s.before != before || number <= s.number || named && number != s.number+1 {
		*s = stack{before: before}
	}
	s.number = number
	return s
}

// textBefore returns a hash of the text before a frame, the same for all frames of a stack. It
// skips digits and blanks: times change, and numbers are padded.
func textBefore(b []byte) (hash uint64) {
	for _, c := range b {
		if c != ' ' && (c < '0' || c > '9') {
			hash = (hash ^ uint64(c)) * 0x100000001b3 // FNV
		}
	}
	return hash
}

// sentence lays out a line with several frames, with an answer at each.
func (c *locator) sentence(text []byte, frames []judge.Frame) {
	f := c.f
	at := 0
	for i := range frames {
		fr := &frames[i]
		if fr.Unframed {
			at = nameUnframed(c, text, at, fr)
			continue
		}
		a := c.answer(fr)
		start := len(f.layout.Buf)
		switch end := fr.Edits[len(fr.Edits)-1].To; {
		case a == nil || !a.hasText:
		case f.o.Dialects.KeepRaw && !layout.InObject(fr):
			f.layout.LogBytes(text[at:end])
			if !bytes.HasPrefix(text[end:], []byte(" "+a.text.functionAndLine(0))) { // the log was filtered before
				f.layout.Mark(" ")
				f.layout.FunctionAndLine(a.text.frame(0))
			}
			at = end
		default:
			at = c.edits(text, at, fr, a, 0)
		}
		f.recordLocated(start, fr, a)
	}
	f.layout.LogBytes(text[at:])
}

// nameUnframed lays out text[at:] up to the end of an address, with the answer as for a pc or data
// element. It returns the offset after the address. Without an answer, it lays out nothing and
// returns the offset at.
func nameUnframed(c *locator, text []byte, at int, fr *judge.Frame) int {
	f, e := c.f, &fr.Edits[0]
	f.elements++
	start := len(f.layout.Buf)
	if err := fr.Place.Err; err != nil {
		f.countPlace(err)
		f.recordPlace(fr)
		f.recordLocated(start, fr, nil)
		return at
	}
	address := answer{addr: fr.Place.Addr, rel: fr.Place.Addr, mod: c.module(c.identity(fr))}
	a := &f.last
	*a = address
	f.lookUp(a, exactAddress)
	data := false
	// the address has no source line as code: look it up as a data address, too
	if !a.hasText || a.text.frame(0).File == "" {
		other := address
		f.lookUp(&other, dataAddress)
		if data = other.hasText; data {
			*a = other
		}
	}
	f.countLookup(a)
	f.countAnswer(OriginRaw, a)
	if a.hasText {
		f.proofs.count(fr.Place.Verified)
		if f.o.Dialects.KeepRaw {
			f.layout.LogBytes(text[at:e.To])
			f.layout.Mark(" ")
		} else {
			f.layout.LogBytes(text[at:e.From])
		}
		if data {
			f.layout.Function(a.text.data())
		} else {
			f.codeLocation(a)
		}
		at = e.To
	}
	f.recordLocated(start, fr, a)
	return at
}

// below lays out the answer for a frame of a dialect that prints answers below the frame's line.
// Each call gets its own line. The line of the innermost call begins with fr.Below, a later one
// with "(inlined by)".
func (c *locator) below(text, eol []byte, fr *judge.Frame) {
	f := c.f
	a := c.answer(fr)
	start := len(f.layout.Buf)
	if a == nil || !a.hasText {
		f.recordLocated(start, fr, a)
		return
	}
	if len(eol) == 0 {
		eol = newline
	}
	for i := range a.text.cuts {
		f.layout.NextLine(eol)
		f.records.addFrame(len(f.layout.Buf), i)
		before := "  (inlined by) "
		if i == 0 {
			before = fr.Below
		}
		f.layout.InlinedCall(text, fr, a.text.frame(i), before, " at ", "")
		c.source(text, eol, fr, a, i)
		f.printLarge()
	}
	f.recordLocated(start, fr, a)
}

// variable lays out a line with the address of a variable in mod. If the name is known, the line
// becomes 'NAME' of size SIZE at 0xSTART, as in sanitizers' reports.
func (c *locator) variable(text []byte, fr *judge.Frame, mod *module) {
	f := c.f
	f.elements++
	a := &f.last
	*a = answer{addr: fr.Value, rel: fr.Value, mod: mod}
	f.completeAnswer(a, wholeVariable)
	f.countAnswer(OriginRaw, a)
	name, size, offset := a.text.whole()
	start := len(f.layout.Buf)
	if !a.hasText || len(fr.Edits) != 2 || size == 0 {
		f.layout.LogBytes(text)
		f.recordLocated(start, fr, a)
		return
	}
	named, at := &fr.Edits[0], &fr.Edits[1]
	f.layout.LogBytes(text[:named.From])
	f.layout.Function(name)
	f.layout.LogBytes(text[named.To:at.From])
	f.layout.Mark(" of size ")
	f.layout.Value(strconv.FormatUint(size, 10))
	f.layout.Mark(" at ")
	f.layout.Value(fmt.Sprintf("%#x", fr.Addr-offset))
	f.layout.LogBytes(text[at.To:])
	f.recordLocated(start, fr, a)
}
