package rtrace

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/symfilter/symfilter/internal/jsonout"
)

// NewReport returns a writer that prints the report written to it to w, its
// frames resolved by the symbolizer of o. With the form [Text] it is the report again: frames that
// were resolved have the function, and the line or the file, behind their
// address, and a line for each inlined call; the header says so; all else is as
// it was. With [JSON] it is an object for each record: report.schema.json. What
// is written is printed as far as its lines are whole, but for calls that
// o.Processing keeps, and for what comes before the first frame that is
// resolved: the header is not known before. Close prints the rest.
func NewReport(w io.Writer, o Options) io.WriteCloser {
	p := &printer{w: w}
	if o.Output == JSON {
		j := &jsonPrinter{printer: p}
		p.translator = newTranslator(&o, j.print)
		return j
	}
	r := &reporter{printer: p}
	p.translator = newTranslator(&o, r.print)
	return r
}

// A printer collects what is printed, and writes it.
type printer struct {
	*translator
	w     io.Writer
	out   jsonout.Buffer
	waits bool // nothing is written yet
}

// Write prints what p completes.
func (p *printer) Write(b []byte) (int, error) {
	n, err := p.translator.Write(b)
	return n, cmp.Or(err, p.send())
}

func (p *printer) send() error {
	if len(p.out) == 0 || p.waits {
		return nil
	}
	_, err := p.w.Write(p.out)
	p.out = p.out[:0]
	return err
}

// reporter prints a report in its own form.
type reporter struct {
	*printer
	begun  bool
	header Record // that waits for a frame to be resolved, if printer.waits
	held   []byte // what stands behind it
	late   bool   // the header went out, and did not say that frames are resolved
}

// Close prints what is left. It does not close the writer.
func (r *reporter) Close() error {
	err := r.translator.Close()
	r.release(false)
	return cmp.Or(err, r.send())
}

// release prints the header that waits, and what stands behind it.
func (r *reporter) release(resolved bool) {
	if !r.waits {
		return
	}
	r.waits = false
	if resolved {
		h := newHeader(&r.header)
		h.filter("resolve", true)
		h.into(&r.header)
	} else {
		r.late = true
	}
	r.out = append(append(r.out, r.header.Raw...), r.held...)
	r.held = nil
}

func (r *reporter) print(rec *Record) error {
	switch rec.Kind {
	case Header:
		r.release(false)
		if r.begun {
			r.space.reset()
		}
		r.begun, r.late = true, false
		r.header = Record{Raw: bytes.Clone(rec.Raw), Fields: cloneFields(rec.Fields)}
		r.waits = true
		if r.o.Symbolizer == nil || slices.Contains(newHeader(rec).filters(), "resolve") {
			r.release(false)
			r.late = false
		}
		return nil
	case Map:
		r.mapped(rec)
	case Frame:
		return r.frame(rec)
	}
	r.begun = true
	return r.add(rec.Raw)
}

// add prints bytes.
func (r *reporter) add(b []byte) error {
	if r.waits {
		if r.held = append(r.held, b...); len(r.held) > maxHold {
			r.release(false)
		}
		return nil
	}
	if r.out = append(r.out, b...); len(r.out) >= sendSize {
		return r.send()
	}
	return nil
}

// frame prints a frame: resolved, or as it is.
func (r *reporter) frame(rec *Record) error {
	r.begun = true
	s := r.space.site(rec)
	if !s.usable() {
		r.miss(rec, s, nil)
		return r.add(rec.Raw)
	}
	a := r.answers.ask(s)
	if !a.better(rec) {
		r.miss(rec, s, a.Err)
		return r.add(rec.Raw)
	}
	r.release(true)
	if r.late {
		r.teller.tell(fmt.Sprintf("the header does not say that frames are resolved: the first %d MiB have none that is", maxHold>>20))
	}
	address := rec.Raw[:addressEnd(rec.Raw)]
	for i, line := range a.lines(r.o, s.at.file.Name) {
		if i > 0 {
			r.out = append(r.out, r.lineEnd(rec)...)
		}
		r.out = append(append(append(r.out, address...), ' '), line...)
	}
	return r.add(rec.end())
}

// lineEnd returns what ends lines within a frame: what ends those of the report.
func (r *reporter) lineEnd(rec *Record) []byte {
	if end := rec.end(); len(end) > 0 {
		return end
	}
	return newline
}

// addressEnd returns where the address ends that a line of a frame begins with.
func addressEnd(line []byte) int {
	i := indent(line)
	for i < len(line) && line[i] > ' ' {
		i++
	}
	return i
}
