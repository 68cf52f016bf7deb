package filter

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A moduleLine is the line that shows a module, while it is collecting maps:
//
//	before [[[ELF module #0x1 "libc.so.6"; BuildID=… [0x…-0x…](rx),…]]] after
//
// A later line merges into it if all its elements are maps of the same module, and nothing follows
// the last map. The texts before the first elements of both lines must be equal except for digits,
// such as the digits of a time.
type moduleLine struct {
	mod    *module
	line   int64 // number of the line in the log
	adds   bool  // the module's own line was already printed
	maps   []interval
	shown  map[interval]bool // set of printed maps; nil until the log repeats one
	at     int               // offset of the brackets in layout.Buf until the line is printed
	end    int               // offset after the brackets, once they are printed
	raw    []byte            // text of the log before the first element of the line
	merges bool              // later lines may still merge into this line
	before []byte            // text before the brackets, as printed
	after  []byte            // text after the brackets, as printed
	eol    []byte
	state  sgr.State // colour of the log at the brackets

	process string
	records []record // records of all elements in the line
}

// maxMerged bounds the maps collected in one line, in case a log adds maps forever.
const maxMerged = 1024

// contextualLine filters a line with reset, module or mmap elements.
func (f *lineFilter) contextualLine(eol []byte) {
	if f.o.ModuleLines == ModuleLinesRaw {
		f.rawContextualLine(eol)
		return
	}
	if f.mergeLine() {
		return
	}
	f.closeModule()
	shown := false // the line has more to show than blanks
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.Kind != markup.Elem {
			f.layout.LogToken(&p.Token)
			shown = shown || !f.layout.Blank(&p.Token)
			continue
		}
		switch p.Tag {
		case markup.TagReset:
			f.settleModule()
			if f.process.space.hasModules() {
				start := len(f.layout.Buf)
				f.bracketedElement(p)
				f.recordElement(start, Element{Tag: markup.TagReset})
				shown = true
			}
			changeSpace(f).reset()
			f.forgetRecent()
		case markup.TagModule:
			f.settleModule()
			if mod, ok := f.defineModule(p); ok {
				f.beginModule(mod, false)
			} else {
				f.rawElement(p)
				shown = true
			}
		case markup.TagMMap:
			v, _, ok := f.addMap(p)
			if !ok {
				f.rawElement(p)
				shown = true
				break
			}
			if f.open == nil || f.open.mod != v.mod || len(bytes.Trim(f.layout.Buf[f.open.at:], " \t")) > 0 {
				f.settleModule()
				f.beginModule(v.mod, true)
			}
			f.layout.Buf = f.layout.Buf[:f.open.at]
			f.open.maps = append(f.open.maps, v)
		default:
			f.settleModule()
			f.presentation(p)
			shown = true
		}
		if f.open == nil {
			f.printLarge()
		}
	}
	f.endContextual(shown, eol)
}

// rawContextualLine is contextualLine for ModuleLinesRaw: it prints the line unchanged.
func (f *lineFilter) rawContextualLine(eol []byte) {
	f.closeModule() // Restore may have opened a module line
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.Kind != markup.Elem {
			f.layout.LogToken(&p.Token)
			continue
		}
		switch p.Tag {
		case markup.TagReset:
			changeSpace(f).reset()
			f.forgetRecent()
		case markup.TagModule:
			f.defineModule(p)
		case markup.TagMMap:
			f.addMap(p)
		default:
			f.presentation(p)
			f.printLarge()
			continue
		}
		f.rawElement(p)
		f.printLarge()
	}
	f.endLine(eol)
}

// endContextual prints a contextual line, holds it back for further maps, or drops it. shown is set
// if the line has something to show.
func (f *lineFilter) endContextual(shown bool, eol []byte) {
	m := f.open
	switch {
	case m != nil && f.hidesModule(markup.TagMMap) && !f.showsText():
		f.open = nil
		f.dropLine()
	case m != nil:
		f.endText(eol)
		f.bufferModule(m, eol)
		if m.merges = f.flushed.text == 0 && len(m.raw) <= maxRepeat && len(m.maps) < maxMerged && m.bufferedBytes() <= maxOpenLine; !m.merges {
			f.closeModule()
		}
	case shown || f.flushed.text > 0:
		f.endLine(eol)
	default:
		f.dropLine()
	}
}

// bufferedBytes returns the approximate bytes of output that m holds back.
func (m *moduleLine) bufferedBytes() int {
	n := len(m.before) + len(m.after)
	for _, r := range m.records {
		n += len(r.appended)
		if r.module != nil && r.module != m {
			n += r.module.recordSize()
		}
	}
	return n
}

// recordSize returns the approximate bytes of m in JSON.
func (m *moduleLine) recordSize() int { return 128 + len(m.mod.name()) + 96*len(m.maps) }

// showsText reports whether the current line must be printed without its hidden modules or maps: it
// has another element, or text after the first hidden one. A log prefix alone is not printed.
func (f *lineFilter) showsText() bool {
	if f.flushed.text > 0 {
		return true
	}
	seen := false
	for i := range f.pieces {
		p := &f.pieces[i]
		switch {
		case p.Kind != markup.Elem:
			if seen && !f.layout.Blank(&p.Token) {
				return true
			}
		case f.hidesModule(p.Tag):
			seen = true
		default:
			return true
		}
	}
	return false
}

func (f *lineFilter) hidesModule(tag markup.Tag) bool {
	switch f.o.ModuleLines {
	case ModuleLinesShort:
		return tag == markup.TagMMap
	case ModuleLinesNone:
		return tag == markup.TagMMap || tag == markup.TagModule
	}
	return false
}

func (f *lineFilter) dropLine() {
	f.layout.Drop()
	f.records.reset()
}

// mergeLine adds the maps of the current line to the open module line, and reports whether the
// lines merge. A merged line has no separate output.
func (f *lineFilter) mergeLine() bool {
	m := f.open
	if m == nil || !m.merges || f.flushed.text > 0 || len(m.maps)+len(f.pieces) > maxMerged {
		return false
	}
	var before []byte
	seen := false
	f.steps += int64(len(f.pieces))
	for i := range f.pieces {
		p := &f.pieces[i]
		switch {
		case p.Kind == markup.Elem:
			if p.Tag != markup.TagMMap {
				return false
			}
			e, err := p.mmap()
			if err != nil || e.Size == 0 || f.process.space.modules[e.Module] != m.mod {
				return false
			}
			seen = true
		case !seen:
			before = append(before, p.Raw...)
		case !f.layout.Blank(&p.Token) || i == len(f.pieces)-1:
			return false
		}
	}
	if !equalButDigits(before, m.raw) || f.process.space.n+2*len(f.pieces) > maxMaps {
		return false
	}
	for i := range f.pieces {
		if p := &f.pieces[i]; p.Kind == markup.Elem {
			if v, repeated, ok := f.addMap(p); ok {
				m.add(v, repeated)
			}
		}
	}
	return true
}

// mayContinue reports whether an unfinished line that begins with text may merge into m. Apart from
// digits, text must be the beginning of the text before m's element.
func (m *moduleLine) mayContinue(text []byte) bool {
	if !m.merges || len(text) > maxRepeat {
		return false
	}
	t, raw := text, m.raw
	for len(t) > 0 && len(raw) > 0 {
		switch {
		case digit(t[0]) && digit(raw[0]):
			t, raw = bytes.TrimLeft(t, "0123456789"), bytes.TrimLeft(raw, "0123456789")
		case t[0] == raw[0] && !digit(t[0]):
			t, raw = t[1:], raw[1:]
		default:
			return false
		}
	}
	return len(t) == 0
}

// equalButDigits reports whether a and b are equal except for their numbers. Numbers in colour
// sequences must be equal.
func equalButDigits(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == esc:
			n := bytes.IndexByte(a, 'm') + 1
			if n == 0 || len(b) < n || !bytes.Equal(a[:n], b[:n]) {
				return false
			}
			a, b = a[n:], b[n:]
		case digit(a[0]) && digit(b[0]):
			a, b = bytes.TrimLeft(a, "0123456789"), bytes.TrimLeft(b, "0123456789")
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		default:
			return false
		}
	}
	return len(a) == 0 && len(b) == 0
}

func digit(c byte) bool { return c-'0' < 10 }

// beginModule opens a module line. The module's brackets will follow the text that the current line
// has so far.
func (f *lineFilter) beginModule(mod *module, adds bool) {
	f.layout.Pen(f.layout.State)
	m := &moduleLine{mod: mod, line: f.line, adds: adds, state: f.layout.State, at: len(f.layout.Buf)}
	f.open = m
	f.layout.Display.Keep()
	f.records.addModule(m)
}

// settleModule lays out the open module's brackets in the current line, before an element other
// than one of its maps. It moves only the text after the module: copying the line for each of its
// modules would take quadratic time. If the line's text is long, settleModule prints the text.
func (f *lineFilter) settleModule() {
	m := f.open
	if m == nil {
		return
	}
	f.open = nil
	since := bytes.Clone(f.layout.Buf[m.at:])
	f.steps += int64(len(since))
	f.layout.Buf = f.layout.Buf[:m.at]
	f.printModule(m)
	f.layout.Buf = append(f.layout.Buf, since...)
	f.records.grow(m.recordSize())
	f.printLarge()
}

// bufferModule holds the current line back until all maps of m are known.
func (f *lineFilter) bufferModule(m *moduleLine, eol []byte) {
	f.steps += int64(len(f.layout.Buf))
	m.before, m.after, m.eol = bytes.Clone(f.layout.Buf[:m.at]), bytes.Clone(f.layout.Buf[m.at:]), bytes.Clone(eol)
	f.layout.Buf = f.layout.Buf[:0]
	if f.layout.Display != nil {
		f.layout.Display.Forget()
	}
	m.process, m.records = f.process.key, f.records.takeRecords()
	for i := range f.pieces {
		if f.pieces[i].Kind == markup.Elem || len(m.raw) > maxRepeat {
			break
		}
		raw := f.pieces[i].Raw
		m.raw = append(m.raw, raw[:min(len(raw), maxRepeat+1)]...) // longer text does not merge
	}
}

// add adds a map to m. repeated is set if the space already had the map; add then skips a map that
// m already shows.
func (m *moduleLine) add(v interval, repeated bool) {
	if repeated && m.shown == nil {
		m.shown = make(map[interval]bool, len(m.maps))
		for _, old := range m.maps {
			m.shown[old] = true
		}
	}
	if repeated && m.shown[v] {
		return
	}
	m.maps = append(m.maps, v)
	if m.shown != nil {
		m.shown[v] = true
	}
}

// closeModule prints the open module line, if any, before output that is not part of it.
func (f *lineFilter) closeModule() {
	m := f.open
	if m == nil {
		return
	}
	f.open = nil
	current := f.of
	f.printOf(m.line)
	f.layout.Buf = append(f.layout.Buf, m.before...)
	m.at = len(f.layout.Buf)
	f.printModule(m)
	f.layout.Buf = append(f.layout.Buf, m.after...)
	l := Line{Number: m.line, Process: m.process, Text: f.layout.Buf, EOL: m.eol}
	if f.records != nil {
		l.Elements = f.records.elements(f.printer, m.records, len(f.layout.Buf))
	}
	f.printLine(&l)
	f.layout.Buf = f.layout.Buf[:0]
	f.printOf(current)
	f.sendLarge()
}

// printModule lays out the brackets of m in m's colour, and restores the current line's colour.
func (f *lineFilter) printModule(m *moduleLine) {
	sortMaps(m.maps)
	f.steps += int64(len(m.maps) * bits.Len(uint(len(m.maps))))
	m.end = len(f.layout.Buf)
	if f.hidesModule(markup.TagModule) || m.adds && f.hidesModule(markup.TagMMap) {
		return
	}
	name, maps := m.mod.name(), m.maps
	if f.o.ModuleLines == ModuleLinesShort {
		name, maps = cmp.Or(name[strings.LastIndexByte(name, '/')+1:], name), nil
	}
	state, cur := f.layout.State, f.layout.Current
	f.layout.State, f.layout.Current = m.state, m.state
	if f.o.Terminal && f.o.ModuleLines == ModuleLinesShort {
		briefModule(&f.layout, m, name)
		m.end = len(f.layout.Buf)
		f.layout.Pen(m.state)
		f.layout.State, f.layout.Current = state, cur
		return
	}
	f.layout.Dim("[[[ELF module")
	f.layout.Dim(" #0x" + strconv.FormatUint(m.mod.id, 16) + " ")
	f.layout.Dim(`"`)
	f.layout.Dim(escape.Clean(name))
	if m.adds {
		f.layout.Dim(`"; adds`)
	} else {
		f.layout.Dim(`"; BuildID=`)
		f.layout.Dim(m.mod.buildID().String())
	}
	for i, v := range maps {
		if i == 0 {
			f.layout.Dim(" [")
		} else {
			f.layout.Dim(",[")
		}
		f.layout.Dim("0x" + strconv.FormatUint(v.start, 16))
		f.layout.Dim("-")
		f.layout.Dim("0x" + strconv.FormatUint(v.end, 16))
		f.layout.Dim("](")
		f.layout.Dim(v.mode.String())
		f.layout.Dim(")")
	}
	f.layout.Dim("]]]")
	m.end = len(f.layout.Buf)
	f.layout.Pen(m.state)
	f.layout.State, f.layout.Current = state, cur
}

// briefModule lays out m without its maps.
func briefModule(f *layout.Line, m *moduleLine, name string) {
	f.Dim("module #0x" + strconv.FormatUint(m.mod.id, 16) + " " + escape.Clean(name))
	if m.adds {
		f.Dim(" has more maps")
	} else {
		f.Dim(" " + m.mod.buildID().String())
	}
}

// defineModule adds a module to the address space. It returns false if the element must be printed
// unchanged.
func (f *lineFilter) defineModule(p *piece) (*module, bool) {
	e, bad := p.module()
	if bad != nil {
		return nil, false // not reached: the scanner has checked the fields
	}
	if len(e.Name) > maxName {
		e.Name = e.Name[:maxName] + "…"
	}
	old := f.space.modules[e.ID]
	mod, changed, err := changeSpace(f).define(e, f.patience.Name(e.BuildID, time.Now()))
	if err != nil {
		f.diagnose(p.Off, fmt.Sprintf("module %d is ignored: %v", e.ID, err))
		return nil, false
	}
	if mod != old {
		f.forgetRecent()
	}
	if changed {
		f.diagnose(p.Off, fmt.Sprintf("module %d is redefined as %q without a {{{reset}}}", e.ID, e.Name))
	}
	f.prefetch(mod)
	return mod, true
}

// addMap adds a map to the address space. repeated is set if the space already had the map. ok is
// false if the element must be printed unchanged.
func (f *lineFilter) addMap(p *piece) (v interval, repeated, ok bool) {
	e, bad := p.mmap()
	if bad != nil {
		return interval{}, false, false
	}
	mod := f.process.space.modules[e.Module]
	if mod == nil {
		f.diagnose(p.Off, fmt.Sprintf("an mmap names module %d, which no module element has defined", e.Module))
		return interval{}, false, false
	}
	if f.process.space.hasMap(e, mod) {
		return f.process.space.find(e.Addr), true, true
	}
	f.forgetRecent()
	v, over, err := changeSpace(f).load(e, mod)
	if err != nil {
		f.diagnose(p.Off, fmt.Sprintf("mmap at %#x is ignored: %v", e.Addr, err))
		return interval{}, false, false
	}
	if e.Addr+(e.Size-1) != v.end {
		f.diagnose(p.Off, fmt.Sprintf("mmap at %#x of %#x bytes reaches beyond 2^64 and is cut there", e.Addr, e.Size))
	}
	if over != nil {
		f.diagnose(p.Off, fmt.Sprintf("mmap [%#x-%#x] of module %d %q overlaps an mmap of module %d %q; the later one wins", v.start, v.end, mod.id, mod.name(), over.id, over.name()))
	}
	return v, false, true
}
