package rtrace

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/symfilter/symfilter/internal/jsonout"
)

// NewReport returns a writer that reads a report and prints it to w. The symbolizer of o resolves
// the frames.
//
// With [Text] the output is the report with more text after addresses: the function of a resolved
// frame, and its line or module. Each inlined call has a separate line. If only the module of a
// frame is known, the text is the module. The header lists the step "resolve" if one of the frames
// in the first 16 MiB was resolved. Until then, Write holds these bytes back. All else is
// unchanged.
//
// With [JSON] the output is objects of report.schema.json. The calls that share a backtrace form
// one object with its frames. Each other record is a separate object.
//
// The other outputs are profiles, which Close prints. Each stack has four values: the number and
// the bytes of all resources that its calls allocated, then the number and the bytes of those
// resources that were not freed by the end. [Folded] stacks have only the bytes not freed. Labels
// of [Pprof] are the type of the resource and the contexts of the call.
//
// Write prints whole lines, except for calls that o.Processing keeps. Close prints the rest. One
// goroutine at a time may use the writer.
func NewReport(w io.Writer, o Options) io.WriteCloser {
	switch o.Output {
	case Pprof, Folded, Speedscope:
		return newStacks(w, o)
	}
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

// A printer collects output and writes it.
type printer struct {
	*translator
	w     io.Writer
	out   jsonout.Buffer
	waits bool // the header and the output after it are held back
}

// Write prints the records of the lines that end in b.
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

// reporter prints a report as text, in the format of sp-rtrace.
type reporter struct {
	*printer
	begun    bool
	header   record // the header, held back while printer.waits is set
	held     []byte // output after the header
	unmarked bool   // the header was printed without the step "resolve"
}

// Close prints the rest. It does not close the writer.
func (r *reporter) Close() error {
	err := r.translator.Close()
	r.release(false)
	return cmp.Or(err, r.send())
}

// release prints the header and the output held back. If resolved is set, the header gets the
// step "resolve".
func (r *reporter) release(resolved bool) {
	if !r.waits {
		return
	}
	r.waits = false
	if resolved {
		h := newHeader(&r.header)
		h.setFilter("resolve", true)
		h.store(&r.header)
	} else {
		r.unmarked = true
	}
	r.out = append(append(r.out, r.header.Raw...), r.held...)
	r.held = nil
}

func (r *reporter) print(rec *record) error {
	switch rec.Kind {
	case headerRecord:
		r.release(false)
		if r.begun {
			r.space.reset()
		}
		r.begun, r.unmarked = true, false
		r.header = record{Raw: bytes.Clone(rec.Raw), Fields: cloneFields(rec.Fields)}
		r.waits = true
		if r.o.Symbolizer == nil || slices.Contains(newHeader(rec).filters(), "resolve") {
			r.release(false)
			r.unmarked = false
		}
		return nil
	case mapRecord:
		r.mapped(rec)
	case frameRecord:
		return r.frame(rec)
	}
	r.begun = true
	return r.appendBytes(rec.Raw)
}

func (r *reporter) appendBytes(b []byte) error {
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

// frame prints a frame: resolved, or unchanged.
func (r *reporter) frame(rec *record) error {
	r.begun = true
	s := r.space.site(rec)
	if !s.usable() {
		r.miss(rec, s, nil)
		return r.unresolved(rec, s)
	}
	a := r.answers.ask(s)
	if !a.better(rec) {
		r.miss(rec, s, a.Err)
		return r.unresolved(rec, s)
	}
	r.missing.Named++
	r.release(true)
	if r.unmarked {
		r.diagnostics.Report(fmt.Sprintf("the header omits the step resolve, since no frame in the first %d MiB was resolved", maxHold>>20))
	}
	address := rec.Raw[:addressEnd(rec.Raw)]
	for i, line := range a.lines(r.o, s.at.file.Name) {
		if i > 0 {
			r.out = append(r.out, r.lineEnd(rec)...)
		}
		r.out = append(append(r.out, address...), line...)
	}
	return r.appendBytes(rec.end())
}

// unresolved prints a frame without a name. It adds the module if that is known, a Symbolizer
// is set, and the report has no text after the address.
func (r *reporter) unresolved(rec *record, s site) error {
	if len(rec.Reported) > 0 || s.at == nil || r.o.Symbolizer == nil {
		return r.appendBytes(rec.Raw)
	}
	line := fromModule(bytes.Clone(rec.Raw[:addressEnd(rec.Raw)]), s.at.path)
	return r.appendBytes(append(line, rec.end()...))
}

// lineEnd returns the report's line end for the lines of a frame, or a line feed if the report
// ends without one.
func (r *reporter) lineEnd(rec *record) []byte {
	if end := rec.end(); len(end) > 0 {
		return end
	}
	return newline
}

// addressEnd returns the end of the address at the beginning of a frame's line.
func addressEnd(line []byte) int {
	i := indent(line)
	for i < len(line) && line[i] > ' ' {
		i++
	}
	return i
}
