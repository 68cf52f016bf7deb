package filter

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

// Numbers of made-up modules and maps. Logs do not contain them: module IDs are smaller, and no
// process has memory at these addresses.
const (
	inventedID   = 1 << 32               // ID of the first module
	inventedBase = 0xfff0_0000_0000_0000 // address of the map of the first module
	inventedSize = 1 << 39               // bytes of a map, which begins with address 0 of the file
	maxInvented  = 4096                  // modules; frames in further modules stay unchanged
)

// inventedMark is the beginning of each pc element made from a frame.
var inventedMark = []byte("{{{pc:0xfff")

// inventedModules are the made-up modules since the log's last reset, with their numbers.
type inventedModules map[cacheModule]uint64

// identity returns the name, the build ID and the state of a located frame's module.
func (c *locator) identity(fr *judge.Frame) cacheModule {
	m := fr.Place.Image
	switch {
	case m == nil:
		return cacheModule{id: fr.ID, name: fr.Module}
	case m.ID.IsZero() || m.File != nil:
		// use the file's path: fr.Module may be a process title, or a path on another machine
		return cacheModule{m.ID, m.Path, m.State}
	}
	return cacheModule{id: m.ID, name: fr.Module}
}

// unchangedLine prints a line without frames unchanged, for [Dialects.Elements].
func (f *lineFilter) unchangedLine(text, eol []byte) {
	if f.process.hex != nil {
		f.dictLine(text)
	} else {
		f.tokens(text)
		f.findDict(text)
	}
	for i := range f.pieces {
		if p := &f.pieces[i]; f.tracer != nil && p.Kind == markup.Elem && p.Tag == markup.TagReset {
			clear(f.tracer.locator.invented)
			f.tracer.locator.firstInvented = 0
		}
	}
	f.footnotes = f.footnotes[:0]
	f.layout.LogBytes(text)
	f.endLine(eol)
}

// place returns the made-up address of a frame, if it has one. For a new module it first prints a
// line with the module and its map, so the current line must be empty.
func (c *locator) place(fr *judge.Frame, eol []byte) (addr uint64, ok bool) {
	if fr.Named || fr.Place.Err != nil || fr.Place.Addr >= inventedSize {
		return 0, false
	}
	k := c.identity(fr)
	n, ok := c.invented[k]
	if !ok {
		n = c.firstInvented + uint64(len(c.invented))
		if k.id.IsZero() || len(k.name) > maxName || n >= maxInvented {
			return 0, false
		}
		if c.invented == nil {
			c.invented = make(inventedModules)
		}
		c.invented[k] = n
		name := k.name
		if name == "" {
			name = "module"
		}
		f := c.f
		f.layout.Buf = markup.Module{ID: inventedID + n, Name: name, BuildID: k.id}.AppendMarkup(f.layout.Buf)
		f.layout.Buf = markup.MMap{Addr: inventedBase + n*inventedSize, Size: inventedSize, Module: inventedID + n, Mode: markup.Read | markup.Exec}.AppendMarkup(f.layout.Buf)
		f.layout.NextLine(lineEnd(eol))
	}
	return inventedBase + n*inventedSize + fr.Place.Addr, true
}

// lineEnd returns eol, or a newline if the log's last line has no end.
func lineEnd(eol []byte) []byte {
	if len(eol) == 0 {
		return newline
	}
	return eol
}

// elementLine prints the current line with elements for its located frames. A sanitizer's frame
// that is alone in its line becomes a bt, unless KeepRaw is set. Other lines keep their text, with
// a pc for each frame. A JSON object is printed unchanged: it has the build IDs of its modules.
func (c *locator) elementLine(text, eol []byte, frames []judge.Frame) {
	f := c.f
	if layout.InObject(&frames[0]) {
		f.layout.LogBytes(text)
		f.endLine(eol)
		return
	}
	// an unframed address stays unchanged: it may be from a pc or a data element
	unframed := func(fr judge.Frame) bool { return fr.Unframed }
	if slices.ContainsFunc(frames, unframed) {
		// the caller's slice must not change
		frames = slices.DeleteFunc(slices.Clone(frames), unframed)
	}
	for i := range frames {
		c.place(&frames[i], eol)
	}
	at := 0
	for i := range frames {
		fr := &frames[i]
		addr, ok := c.place(fr, eol)
		if !ok || fr.Below != "" {
			continue
		}
		if len(frames) == 1 && !f.o.Dialects.KeepRaw && isBT(text, fr) {
			at = fr.Edits[len(fr.Edits)-1].To
			begin, end := layout.AroundAnswer(text[fr.Start:at])
			f.layout.LogBytes(text[:fr.Start])
			f.layout.Sequences(begin)
			f.layout.Buf = markup.BT{Frame: uint64(fr.Number), Addr: addr, Kind: markup.Precise}.AppendMarkup(f.layout.Buf)
			f.layout.Sequences(end)
			break
		}
		end := len(bytes.TrimRight(text, " \t"))
		if len(frames) > 1 {
			end = fr.Edits[len(fr.Edits)-1].To
		}
		f.layout.LogBytes(text[at:end])
		f.layout.Buf = markup.PC{Addr: addr, Kind: markup.Precise}.AppendMarkup(append(f.layout.Buf, ' '))
		at = end
	}
	f.layout.LogBytes(text[at:])
	for i := range frames {
		fr := &frames[i]
		addr, ok := c.place(fr, eol)
		if !ok || fr.Below == "" {
			continue
		}
		f.layout.NextLine(lineEnd(eol))
		if fr.Start <= maxRepeat {
			f.layout.LogBytes(text[:fr.Start])
		}
		f.layout.Mark(fr.Below)
		f.layout.Buf = markup.PC{Addr: addr, Kind: markup.Precise}.AppendMarkup(f.layout.Buf)
		f.printLarge()
	}
	f.endLine(eol)
}

// isBT reports whether a bt element can replace the frame: the frame has a number and a sanitizer's
// form. A "{" before the frame would become part of the element's mark.
func isBT(text []byte, fr *judge.Frame) bool {
	last := len(fr.Edits) - 1
	return fr.Inline == dialect.InlineFrames && fr.Digits.To > 0 && fr.Number >= 0 && last >= 0 &&
		fr.Edits[last].Part == dialect.AtSource && !bytes.HasSuffix(text[:fr.Start], []byte("{"))
}

// elementNote prints a footnote as note does, but with an element instead of an answer.
func (c *locator) elementNote(prefix, between []byte, fr *judge.Frame) {
	f := c.f
	f.layout.NextLine(between)
	addr, ok := c.place(fr, between)
	f.layout.LogBytes(prefix)
	f.layout.Mark("  #")
	f.layout.Value(strconv.Itoa(fr.Number))
	if ok {
		f.layout.Buf = markup.PC{Addr: addr, Kind: markup.Precise}.AppendMarkup(append(f.layout.Buf, ' '))
	}
	f.printLarge()
}
