package rtrace

import (
	"io"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
)

// NewMarkup returns a writer that renders a report to dst. Maps and frames of known files become
// elements, unless the report's own text is better: see Options. All other lines are unchanged. A
// reset element precedes each header, since a header begins a new process. Write renders whole
// lines, except for calls that o.Processing keeps; Close renders the rest. One goroutine at a time
// may use the writer.
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser {
	r := &renderer{dst: dst}
	r.translator = newTranslator(&o, r.render)
	return r
}

// A translator reads a report, tracks its mappings, and looks up frames for any output.
type translator struct {
	*recordReader
	o           *Options
	diagnostics *report.Once
	space       *space
	answers     *answerer
	missing     report.Missing
	processor   *processor // nil without Processing
	isReport    bool       // a header, map, call or another declaration of a report was read
}

// newTranslator returns a translator that passes the processed records to use.
func newTranslator(o *Options, use func(*record) error) *translator {
	t := &translator{o: o, diagnostics: &report.Once{To: o.Diagnose}, answers: newAnswerer(o.report())}
	t.space = newSpace(o, t.diagnostics)
	if o.Processing.active() {
		t.processor = newProcessor(o, t.space, t.diagnostics, use)
		use = t.processor.addRecord
	}
	t.recordReader = newReader(func(rec *record) error {
		switch rec.Kind {
		case headerRecord, mapRecord, allocRecord, freeRecord, contextRecord, resourceRecord, attachmentRecord:
			t.isReport = true
		}
		return use(rec)
	})
	return t
}

// Write reads the lines that end in p, and passes their records on.
func (t *translator) Write(p []byte) (int, error) {
	t.answers.now = time.Now()
	return t.recordReader.Write(p)
}

// mapped adds a map to the address space, and starts the search for the file's debug file.
func (t *translator) mapped(rec *record) *mapping {
	m := t.space.addMapping(string(rec.Path), rec.From, rec.To)
	if m != nil && m.placed {
		t.answers.Prefetch(m.file.Object)
	}
	return m
}

// Close passes on the remaining records, and then the counts of unresolved frames.
func (t *translator) Close() error {
	err := t.recordReader.Close()
	if !t.isReport {
		t.diagnostics.Report("not a report of sp-rtrace: the input has no header and no record")
	}
	if t.processor != nil && err == nil {
		if err = t.processor.end(); err == nil {
			err = t.processor.rereader.Close()
		}
	}
	t.missing.Pass(t.o.report())
	return err
}

// miss adds a frame without a name to the unresolved frames, unless the report has a function for
// the frame.
func (t *translator) miss(rec *record, s site, err error) {
	for _, text := range rec.Reported {
		if parseSymbol(text).function != nil {
			return
		}
	}
	t.missing.Add(s.unresolved(err))
}

// renderer turns records into text and elements.
type renderer struct {
	*translator
	dst     markup.Sink
	begun   bool   // a line was rendered
	modules uint64 // number of modules so far
}

func (r *renderer) render(rec *record) error {
	switch rec.Kind {
	case headerRecord:
		if r.begun {
			r.space.reset()
			r.modules = 0
		}
		r.begun = true
		if err := r.line(markup.Reset{}); err != nil {
			return err
		}
	case mapRecord:
		return r.mapped(rec)
	case frameRecord:
		return r.frame(rec)
	}
	r.begun = true
	return r.dst.Text(rec.Raw)
}

var newline = []byte{'\n'}

// mapped renders a map as elements if the mapped part of the file is known, and otherwise as
// text. With Options.Elements, the file must also have a build ID.
func (r *renderer) mapped(rec *record) error {
	r.begun = true
	m := r.translator.mapped(rec) // also starts the search for the debug file
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

// line renders an element on a separate line.
func (r *renderer) line(e markup.Element) error {
	if err := r.dst.Element(e); err != nil {
		return err
	}
	return r.dst.Text(newline)
}

// frame renders a frame as an element, or as text: see isElement.
func (r *renderer) frame(rec *record) error {
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

// isElement reports whether a frame becomes an element. Elements refer to the maps rendered last,
// so a frame of an earlier epoch must have the same file and address in these maps. With
// Options.Elements, the frame's file must have a build ID. Without Options.Elements, the
// symbolizer's answer must be better than the report's own text, if there is such text.
func (r *renderer) isElement(rec *record, s site) bool {
	if !s.usable() {
		return false
	}
	if rec.epoch != 0 { // elements refer to the maps rendered last
		if now := r.space.site(&record{Addr: rec.Addr}); !now.usable() || now.at.file != s.at.file || now.rel != s.rel {
			return false
		}
	}
	if r.o.Elements {
		return !s.at.file.ID.IsZero()
	}
	return len(rec.Reported) == 0 || r.answers.ask(s).better(rec)
}

// indent returns the number of blanks at the beginning of a line.
func indent(line []byte) (n int) {
	for n < len(line) && (line[n] == '\t' || line[n] == ' ') {
		n++
	}
	return n
}
