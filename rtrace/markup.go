package rtrace

import (
	"io"
	"strings"
	"time"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/report"
)

// NewMarkup returns a writer that renders the report written to it to dst: its
// lines as they are, but for those of maps and frames, in whose place elements
// come. A header begins a process with a reset. What is written is rendered as
// far as its lines are whole, but for calls that o.Processing keeps; Close
// renders the rest.
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser {
	r := &renderer{dst: dst}
	r.translator = newTranslator(&o, r.render)
	return r
}

// A translator is what all forms of output have in common.
type translator struct {
	*Reader
	o         *Options
	teller    *teller
	space     *space
	answers   *answerer
	missing   report.Missing
	processor *processor // nil: there is nothing to do
}

// newTranslator returns a translator that hands to use what is left of a report.
func newTranslator(o *Options, use func(*Record) error) *translator {
	t := &translator{o: o, teller: &teller{to: o.Diagnose}, answers: newAnswerer(&o.Options)}
	t.space = newSpace(o, t.teller)
	if o.Processing.active() {
		t.processor = newProcessor(&o.Processing, t.space, t.teller, use)
		use = t.processor.record
	}
	t.Reader = NewReader(use)
	return t
}

// Write uses what p completes.
func (t *translator) Write(p []byte) (int, error) {
	t.answers.now = time.Now()
	return t.Reader.Write(p)
}

// mapped takes a map, and starts to look for the debug file of what was mapped.
func (t *translator) mapped(rec *Record) *mapping {
	m := t.space.add(string(rec.Path), rec.From, rec.To)
	if m != nil && m.placed {
		t.answers.Prefetch(m.file.Object)
	}
	return m
}

// Close uses what is left.
func (t *translator) Close() error {
	err := t.Reader.Close()
	if t.processor != nil && err == nil {
		if err = t.processor.end(); err == nil {
			err = t.processor.again.Close()
		}
	}
	if t.o.Unresolved != nil {
		t.o.Unresolved(t.missing.List())
	}
	return err
}

// miss counts a frame that gets no name, if the report has none either.
func (t *translator) miss(rec *Record, s site, err error) {
	for _, text := range rec.Said {
		if parseSaid(text).function != nil {
			return
		}
	}
	t.missing.Add(s.unresolved(err))
}

// renderer makes text and elements of records.
type renderer struct {
	*translator
	dst     markup.Sink
	begun   bool   // a line has come
	modules uint64 // numbers given
}

func (r *renderer) render(rec *Record) error {
	switch rec.Kind {
	case Header:
		if r.begun {
			r.space.reset()
			r.modules = 0
		}
		r.begun = true
		if err := r.line(markup.Reset{}); err != nil {
			return err
		}
	case Map:
		return r.mapped(rec)
	case Frame:
		return r.frame(rec)
	}
	r.begun = true
	return r.dst.Text(rec.Raw)
}

var newline = []byte{'\n'}

// mapped renders a map: as elements where it is known what was mapped.
func (r *renderer) mapped(rec *Record) error {
	r.begun = true
	m := r.translator.mapped(rec) // the symbolizer may know the file by its path only
	if m == nil || !m.placed || r.o.Elements && m.file.ID.IsZero() {
		return r.dst.Text(rec.Raw)
	}
	f := m.file
	if !f.shown {
		f.shown = true
		f.number = r.modules
		r.modules++
		name := f.Path
		if !f.ID.IsZero() {
			name = f.Name[strings.LastIndexByte(f.Name, '/')+1:]
		}
		if err := r.line(markup.Module{ID: f.number, Name: name, BuildID: f.ID}); err != nil {
			return err
		}
	}
	return r.line(markup.MMap{Addr: m.from, Size: m.to - m.from, Module: f.number, Mode: markup.Read | markup.Exec, Rel: m.rel})
}

// line renders an element that has a line of its own.
func (r *renderer) line(e markup.Element) error {
	if err := r.dst.Element(e); err != nil {
		return err
	}
	return r.dst.Text(newline)
}

// frame renders a frame: as an element, or as it is where the report knows
// better.
func (r *renderer) frame(rec *Record) error {
	s := r.space.site(rec)
	if !r.isElement(rec, s) {
		r.miss(rec, s, nil)
		return r.dst.Text(rec.Raw)
	}
	if err := r.dst.Text(rec.Raw[:indent(rec.Raw)]); err != nil {
		return err
	}
	if err := r.dst.Element(markup.BT{Frame: rec.Frame, Addr: rec.Addr, Kind: markup.ReturnAddress}); err != nil {
		return err
	}
	return r.dst.Text(rec.end())
}

// isElement reports whether a frame becomes an element: its place is known, and
// the report does not know better.
func (r *renderer) isElement(rec *Record, s site) bool {
	if !s.usable() {
		return false
	}
	if rec.epoch != 0 { // it is the maps that were shown last that an element means
		if now := r.space.site(&Record{Addr: rec.Addr}); !now.usable() || now.at.file != s.at.file || now.rel != s.rel {
			return false
		}
	}
	if r.o.Elements {
		return !s.at.file.ID.IsZero()
	}
	return len(rec.Said) == 0 || r.answers.ask(s).better(rec)
}

// indent returns how many blanks a line begins with.
func indent(line []byte) (n int) {
	for n < len(line) && (line[n] == '\t' || line[n] == ' ') {
		n++
	}
	return n
}
