package callgrind

import (
	"io"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/report"
)

// NewReport returns a writer that sums the profile written to it, and prints the
// report of it to w as Options.Output says, its locations answered by the symbolizer of o. A table
// and the functions of JSON are printed by Close, a profile part by part.
func NewReport(w io.Writer, o Options) *Report {
	r := &Report{o: &o}
	r.Reader = newReader(r.record, o.Report, o.Budget)
	r.m = newModel(r.Reader)
	r.s = newSymbols(r.Reader, &o)
	r.out = printer{w: w, members: o.Members}
	if o.Foreign != nil && o.Output == Table {
		r.Reader.foreign = r.foreign
	}
	switch o.Output {
	case Profile:
		r.m.jumpy = true
		r.again = &rewriter{printer: &r.out, m: r.m, s: r.s, unresolved: make(map[Name]int)}
	}
	return r
}

// A Report sums a profile.
type Report struct {
	*Reader
	o     *Options
	m     *model
	s     *symbols
	out   printer
	again *rewriter

	object   Name // of the last line
	openLine bool // the last line that Foreign was given has no end
	missing  report.Missing
	failed   error
}

// record adds a record.
func (r *Report) record(rec *Record) error {
	if rec.Kind <= Part && r.m.sums.begun {
		r.endPart()
	}
	if r.again != nil {
		r.again.record(rec)
	}
	if rec.Kind == Cost && rec.Object != r.object { // files are looked for while the rest is read
		r.object = rec.Object
		r.s.objects.of(rec.Object)
	}
	if err := r.m.take(rec); err != nil {
		return err
	}
	return r.out.err
}

// endPart ends a part.
func (r *Report) endPart() {
	r.m.endPart()
	if r.again != nil {
		r.again.part(r.m.sums.said, r.m.sums.added)
	} else if r.o.Output == JSON {
		r.jsonPart()
	}
	r.m.head.thread, r.m.head.trigger = "", ""
}

// foreign gives Foreign a line, or a part of one.
func (r *Report) foreign(line []byte) error {
	r.openLine = len(line) == 0 || line[len(line)-1] != '\n'
	_, err := r.o.Foreign.Write(line)
	return err
}

// endForeign ends the lines that are not of the profile. The table begins on a line of its own.
func (r *Report) endForeign() error {
	if r.Reader.foreign == nil {
		return nil
	}
	if r.openLine && len(r.Events()) > 0 {
		if _, err := io.WriteString(r.o.Foreign, "\n"); err != nil {
			return err
		}
	}
	return r.o.Foreign.Close()
}

// Close prints the report. It does not close the writer.
func (r *Report) Close() error {
	defer r.share.Release()
	err := r.Reader.Close()
	if e := r.endForeign(); err == nil {
		err = e
	}
	if r.m.sums.begun {
		r.endPart()
	}
	switch {
	case r.Reader.number == 0:
		r.o.Report("it is no profile: it is empty (with --separate-threads=yes, Callgrind writes one a thread, FILE-01 and so on)")
	case len(r.Events()) == 0:
		r.o.Report("it is no profile: it has no events: line, and no costs")
	case r.again == nil:
		r.m.widen(len(r.Events())) // the last ones may have been named without costs
		v := resolve(r.m, r.s)
		g := newGraph(v, r.m.sums.total)
		if r.o.Output == JSON {
			r.json(g)
		} else {
			r.table(g)
		}
		r.note(v.needed)
	default:
		r.note(r.again.unresolved)
	}
	r.out.flush()
	unresolved := r.missing.List()
	r.s.objects.tell(r.o, unresolved)
	if r.o.Unresolved != nil {
		r.o.Unresolved(unresolved)
	}
	switch {
	case err == nil && r.out.err != nil:
		err = r.out.err
	case err == nil:
		err = r.failed
	}
	return err
}

// note keeps what stayed without a name.
func (r *Report) note(needed map[Name]int) {
	for _, n := range slices.Sorted(maps.Keys(needed)) {
		if f := r.s.objects.byName[n]; f != nil && needed[n] > 0 {
			r.missing.Add(f.Unresolved(int64(needed[n]), f.failed))
		}
	}
}

// A printer collects what is printed, until there is enough to be written.
type printer struct {
	w       io.Writer
	members []byte // of each object of JSON
	b       []byte
	err     error
}

// sendSize is how many bytes are collected.
const sendSize = 256 << 10

// send writes what was collected, if that is enough.
func (p *printer) send() {
	if len(p.b) >= sendSize {
		p.flush()
	}
}

func (p *printer) flush() {
	if p.err == nil && len(p.b) > 0 {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}
