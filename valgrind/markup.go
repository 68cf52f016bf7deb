package valgrind

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/markup"
)

// NewMarkup returns a writer that renders a report to dst. The text reads like Valgrind's own
// report, with elements for frames and for addresses of variables. Each process begins with a
// reset. A record is rendered when it is whole. Close renders the rest, and does not close dst.
// All errors come from dst. The writer is for one goroutine.
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser {
	r := &renderer{dst: dst, t: newTracker(&o), o: &o}
	r.answers = r.t.answers
	r.Reader = NewReader(r.renderRecord)
	return r
}

// A renderer converts records to text and elements.
type renderer struct {
	*Reader
	o       *Options
	dst     markup.Sink
	t       *tracker
	answers *answerer
	err     error

	line    []byte // text not yet written to dst
	sites   []site // sites of the current record
	stacks  []stackSites
	headed  bool     // the line that names the process was written
	modules uint64   // modules written since the last reset
	shown   []*epoch // the epochs whose maps were written since the last reset
	repeat  []byte   // the last suppression
}

// Close renders the record that the end of the report cuts off.
func (r *renderer) Close() error {
	err := r.Reader.Close()
	r.flush()
	r.t.finish()
	return cmp.Or(err, r.err)
}

func (r *renderer) flush() {
	if r.err == nil && len(r.line) > 0 {
		r.err = r.dst.Text(r.line)
	}
	r.line = r.line[:0]
}

func (r *renderer) sendElement(e markup.Element) {
	r.flush()
	if r.err == nil {
		r.err = r.dst.Element(e)
	}
}

func (r *renderer) renderRecord(rec *Record) error {
	r.answers.time = time.Time{}
	if rec.Name == "/"+document {
		closing{r}.renderSummary()
	}
	switch r.t.changeProcess(rec) {
	case begins, resumes:
		r.headed, r.repeat = false, nil
		r.reset()
	case ends:
		r.t.reportUnplaced(r.t.cur)
	default:
		if !r.t.cur.learnHeader(rec) {
			r.t.learn(rec)
		}
		r.t.checkVersion(rec)
		r.t.cur.keepError(rec)
		r.t.cur.learnSummary(rec)
		r.findSites(rec)
		r.renderContent(rec)
	}
	r.flush()
	return r.err
}

// findSites finds the sites of a record, and writes the modules that they need.
func (r *renderer) findSites(rec *Record) {
	r.sites, r.stacks = r.sites[:0], r.stacks[:0]
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Name != "stack" || it.Leaf || it.First == it.Last {
			continue
		}
		from := len(r.sites)
		r.sites = r.t.appendSites(r.sites, rec.Frames[it.First:it.Last])
		r.stacks = append(r.stacks, stackSites{it.First, from, len(r.sites)})
	}
	if rec.Name == "errorcounts" {
		closing{r}.findCounted(rec)
	}
	r.writeMapsFor(r.sites)
}

// writeMapsFor writes the maps that these sites need. If objects of two sites overlap, it writes
// only the maps of the first. renderStack calls it again with the sites of each stack.
func (r *renderer) writeMapsFor(sites []site) {
	missing := func(s *site) bool { return s.at != nil && !s.at.shown && r.isElement(s) }
	if !slices.ContainsFunc(sites, func(s site) bool { return missing(&s) }) {
		return
	}
	var needed []*epoch
	for i := range sites {
		e := sites[i].at
		if e == nil || slices.Contains(needed, e) || !e.shown && !missing(&sites[i]) || slices.ContainsFunc(needed, e.overlaps) {
			continue
		}
		needed = append(needed, e)
	}
	r.writeHead()
	r.writeMaps(needed...)
}

// A stackSites is the range of one stack's sites in renderer.sites. frame is the index of the
// stack's first frame in the record.
type stackSites struct{ frame, from, to int }

// reset writes a reset, which ends all maps.
func (r *renderer) reset() {
	for _, e := range r.shown {
		e.shown = false
	}
	r.shown, r.modules = r.shown[:0], 0
	r.sendElement(markup.Reset{})
	r.line = append(r.line, '\n')
	r.flush()
}

// writeMaps writes the modules and maps that dst does not have yet. The given objects must not
// overlap each other. If one of these objects overlaps an object at dst, writeMaps first writes a
// reset, since other filters ignore overlapping maps.
func (r *renderer) writeMaps(all ...*epoch) {
	if slices.ContainsFunc(all, func(e *epoch) bool { return !e.shown && slices.ContainsFunc(r.shown, e.overlaps) }) {
		r.reset()
	}
	for _, e := range all {
		if !e.shown {
			r.writeModule(e)
		}
	}
}

func (r *renderer) writeModule(e *epoch) {
	f := e.of.file
	r.shown = append(r.shown, e)
	e.shown = true
	e.number = r.modules
	r.modules++
	name := baseName(e.of.name)
	if f.ID.IsZero() {
		name = f.Path
	}
	if r.o.Symbolizer != nil { // a file without a build ID is found only by its path
		r.o.Symbolizer.Prefetch(f.ID, f.Path)
	}
	r.sendElement(markup.Module{ID: e.number, Name: name, BuildID: f.ID})
	r.line = append(r.line, '\n')
	for m := range f.Maps(e.number, e.bias) {
		r.sendElement(m)
		r.line = append(r.line, '\n')
	}
}

func (r *renderer) renderStack(it *Item) {
	if it.First == it.Last {
		return
	}
	n, _ := slices.BinarySearchFunc(r.stacks, it.First, func(s stackSites, first int) int { return s.frame - first })
	sites := r.sites[r.stacks[n].from:r.stacks[n].to]
	r.writeMapsFor(sites)
	for i := range sites {
		s := &sites[i]
		if s.at == nil || !s.at.shown || !r.isElement(s) {
			r.frameText(s)
			continue
		}
		r.sendElement(markup.BT{Frame: s.number, Addr: s.addr, Kind: s.kind})
		r.line = append(r.line, '\n')
	}
}

// isElement reports whether a site becomes an element. The site must be located. Without a
// symbolizer, or with Options.Elements, its file must have a build ID. Otherwise, a named site
// becomes an element if the symbolizer's answer improves on the report. An unnamed site becomes an
// element unless it is known that no symbol covers its address.
func (r *renderer) isElement(s *site) bool {
	if s.at == nil {
		return false
	}
	f := s.at.of.file
	if r.o.Symbolizer == nil || r.o.Elements {
		return !f.ID.IsZero()
	}
	last := &s.frames[len(s.frames)-1]
	if last.Fn == nil && last.File == nil {
		return !r.answers.hasNoSymbol(s)
	}
	return r.answers.answerFor(s).improvesOn(s)
}

// frameText renders a site with the report's functions and lines, in package filter's layout.
func (r *renderer) frameText(s *site) {
	if last := &s.frames[len(s.frames)-1]; last.Fn == nil && last.File == nil {
		r.t.countUnresolved(s, nil)
	}
	for i := range s.frames {
		f := &s.frames[i]
		b := r.line
		digits := strconv.FormatUint(s.number, 10)
		b = append(b, "    #"[min(len(digits), 5)-1:]...)
		b = append(b, digits...)
		if i < len(s.frames)-1 {
			depth := strconv.Itoa(i + 1)
			b = append(append(b, '.'), depth...)
			if len(depth) < 2 {
				b = append(b, ' ')
			}
		} else {
			b = append(b, "   "...)
		}
		b = append(b, ' ')
		if f.RawIP != nil {
			b = appendClean(b, f.RawIP)
		} else {
			b = append(b, "0x"...) // package fmt would take a tenth of a report's time
			const hex = "0123456789abcdef"
			for shift := 60; shift >= 0; shift -= 4 {
				b = append(b, hex[f.IP>>shift&15])
			}
		}
		r.line = append(b, ' ')
		r.renderFunction(f.Fn)
		r.renderPosition(f)
		if f.Obj != nil {
			r.line = appendObject(r.line, s, f)
		} else if f.Fn == nil {
			r.line = append(r.line, "(no module)"...)
		}
		r.line = append(bytes.TrimRight(r.line, " "), '\n')
	}
}

// appendObject appends the object of a frame, with the address in its file if known. If a frame
// has neither function nor file, the build ID follows, for tools that can resolve it.
func appendObject(b []byte, s *site, f *Frame) []byte {
	b = appendClean(append(b, '('), base(f.Obj))
	if s.at != nil {
		b = strconv.AppendUint(append(b, "+0x"...), s.rel, 16)
	}
	b = append(b, ')')
	if s.at != nil && f.Fn == nil && f.File == nil && !s.at.of.file.ID.IsZero() {
		b = append(s.at.of.file.ID.AppendHex(append(b, " (BuildId: "...)), ')')
	}
	return b
}

// renderFunction renders the name of a function, as an element if the name is mangled.
func (r *renderer) renderFunction(fn []byte) {
	switch {
	case len(fn) == 0:
		return
	case isMangled(fn):
		r.sendElement(markup.Symbol{Name: string(fn)})
	default:
		r.line = appendClean(r.line, fn)
	}
	r.line = append(r.line, ' ')
}

// isMangled reports whether fn looks like a mangled name of C++ or Rust.
func isMangled(fn []byte) bool {
	if len(fn) < 3 || len(fn) > maxPath || fn[0] != '_' || fn[1] != 'Z' && fn[1] != 'R' {
		return false
	}
	for _, c := range fn {
		if !isLetter(c) && (c < '0' || c > '9') && c != '.' && c != '$' && c != '@' {
			return false
		}
	}
	return true
}

func (r *renderer) renderPosition(f *Frame) {
	if len(f.File)+len(f.Dir) == 0 && f.Line == 0 {
		return
	}
	r.line = escape.AppendText(r.line, r.o.report().ShownFile(f.source()), "\t")
	if f.Line != 0 {
		r.line = strconv.AppendUint(append(r.line, ':'), f.Line, 10)
	}
	r.line = append(r.line, ' ')
}
