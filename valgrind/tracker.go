package valgrind

import (
	"bytes"
	"fmt"
	"io"

	"github.com/symfilter/symfilter/internal/report"
)

// A tracker keeps the processes of a report, and the current one.
type tracker struct {
	o       *Options
	files   *files
	solver  solver
	begun   int        // number of documents begun
	open    []*process // processes whose documents have not ended, innermost last
	closed  bool       // the current document has ended; later records are from a forked child
	ahead   []*process // processes of Options.Ahead not yet begun, by number
	cur     *process
	once    report.Once // for messages about the report
	missing report.Missing
	answers *answerer
	reads   bool // the report is read ahead, so facts outlive their process

	hasElements bool // the report has an element
}

func newTracker(o *Options) *tracker {
	t := &tracker{o: o, once: report.Once{To: o.Diagnose}}
	t.solver = solver{maps: o.Maps, allowed: maxWork, demangle: func(s string) string { return s }}
	if o.Ahead != nil {
		t.ahead, t.files, t.answers = o.Ahead.processes, o.Ahead.files, o.Ahead.answers
	} else {
		t.files = &files{objects: report.NewObjects(o.report(), maxOpen, true)}
		t.answers = newAnswerer(o.report())
	}
	if o.Symbolizer != nil {
		t.solver.answers = t.answers
		t.solver.demangle = o.Symbolizer.Demangle
	}
	t.cur = t.nextProcess()
	return t
}

// nextProcess returns a process for the next document. After ReadAhead, this is the process that
// was read, with its objects located if possible.
func (t *tracker) nextProcess() *process {
	p := newProcess(t.files, t.begun)
	if t.begun < len(t.ahead) {
		p, t.ahead[t.begun] = t.ahead[t.begun], nil
		t.solver.solveAll(p)
		t.prefetch(p)
	}
	t.begun++
	return p
}

// prefetch starts the search for the debug file of each located object of p.
func (t *tracker) prefetch(p *process) {
	if t.o.Elements { // another program resolves the frames
		return
	}
	for _, e := range p.places {
		t.answers.Prefetch(e.of.file.Object)
	}
}

// A turn describes how a record changes the current process.
type turn uint8

const (
	same    turn = iota // the record is about the current process
	begins              // another process begins
	resumes             // the interrupted process continues
	ends                // the document of the current process ends
)

// changeProcess changes the current process if a document begins or ends.
func (t *tracker) changeProcess(r *Record) turn {
	t.hasElements = t.hasElements || r.Name != ""
	switch r.Name {
	case document:
		if n := len(t.open); n == 0 || t.open[n-1] != t.cur {
			t.forget(t.cur)
		}
		t.cur, t.closed = t.nextProcess(), false
		if len(t.open) < maxNesting {
			t.open = append(t.open, t.cur)
		}
		return begins
	case "/" + document:
		if len(t.open) > 1 {
			t.forget(t.cur)
			t.open = t.open[:len(t.open)-1]
			t.cur = t.open[len(t.open)-1]
			return resumes
		}
		t.open, t.closed = nil, true
		return ends
	}
	return same
}

// forget subtracts the memory for the facts of an ended process from the total of all files. It
// does nothing during ReadAhead, which keeps the facts.
func (t *tracker) forget(p *process) {
	if !t.reads {
		t.files.kept -= p.kept
		p.kept = 0
	}
}

// newestProtocol is the newest format of Valgrind, as of version 3.26.
const newestProtocol = 6

// checkVersion reports an unknown version of the format, or an unknown encoding.
func (t *tracker) checkVersion(r *Record) {
	if r.encoding != "" {
		t.once.Report(fmt.Sprintf("the report is in the encoding %.20q; UTF-8 and ISO-8859-1 are read, and other bytes are printed unchanged", r.encoding))
	}
	if r.Name != "protocolversion" || r.Continued {
		return
	}
	version := bytes.TrimSpace(r.Text)
	if n, ok := parseNumber(version); !ok || n > newestProtocol {
		t.once.Report(fmt.Sprintf("the report has protocol version %.20q, and is read as version %d, the newest known version", version, newestProtocol))
	}
}

// learn takes the facts from a record, and searches for the load addresses of objects.
func (t *tracker) learn(r *Record) {
	t.solver.allowed += len(r.Frames) * frameWork
	if t.o.Ahead != nil && t.begun <= len(t.ahead) && !t.hasUnplaced(r) {
		return // the facts are known from reading ahead
	}
	t.cur.learn(r)
	t.solver.solveAll(t.cur)
}

// hasUnplaced reports whether a record has a frame in an object that is not located. This is
// possible even after reading ahead, if the report has grown since.
func (t *tracker) hasUnplaced(r *Record) bool {
	for i := range r.Frames {
		if f := &r.Frames[i]; f.Obj != nil && f.RawIP == nil && t.epochOf(f) == nil {
			return true
		}
	}
	return false
}

// epochOf returns the located epoch of a frame's object at the frame's address, or nil.
func (t *tracker) epochOf(f *Frame) *epoch {
	if f.Obj == nil || f.RawIP != nil {
		return nil
	}
	if o := t.cur.knownObject(f.Obj); o != nil && o.file.Err == nil {
		return o.epochAt(f.IP)
	}
	return nil
}

// epochAt returns the located epoch whose object has the address ip, or nil. It prefers an epoch in
// which ip is in code.
func (o *loaded) epochAt(ip uint64) (data *epoch) {
	for i := len(o.epochs) - 1; i >= 0; i-- {
		e := o.epochs[i]
		switch {
		case !e.located:
		case report.Covers(o.file.Code, ip-e.bias):
			return e
		case data == nil && report.Covers(o.file.Loads, ip-e.bias):
			data = e
		}
	}
	return data
}

// reportUnplaced reports each object of p that is not located, once.
func (t *tracker) reportUnplaced(p *process) {
	for _, o := range p.order {
		f := o.file
		for _, e := range o.epochs {
			switch {
			case e.located || f.Err != nil || e.isData(f):
			case e.stale:
				t.once.Report(fmt.Sprintf("%s: %v", f.Path, errOtherFile))
			case e.mayBeData(f):
				t.once.Report(fmt.Sprintf("%s: the load address is not known; use --bias %s=0x… or --map", f.Path, baseName(o.name)))
			default:
				t.once.Report(fmt.Sprintf("%s: any of %d load addresses is possible; use --bias %s=0x… or --map", f.Path, e.places(), baseName(o.name)))
			}
		}
		if f.Err != nil {
			t.once.Report(fmt.Sprintf("%.200s: %v; the frames of this file stay as they are", f.Path, f.Err))
		}
	}
}

// finish reports the unresolved frames, and the objects that are not located. Then it closes the
// files.
func (t *tracker) finish() {
	for _, p := range t.open {
		t.reportUnplaced(p)
	}
	t.reportUnplaced(t.cur)
	if !t.hasElements {
		t.once.Report("not an XML report: valgrind writes one with --xml=yes --xml-file=FILE")
	}
	t.missing.Pass(t.o.report())
	t.files.close()
}

// Ahead holds the facts of a whole report, from which the load biases of its objects are inferred.
// It keeps the objects' files open.
type Ahead struct {
	processes []*process
	files     *files
	answers   *answerer // shared with the reader, including its patience
}

// ReadAhead reads the whole report to infer the load biases of its objects, since a fact about the
// first frame may be at the end. Pass the returned Ahead, in the same o, to exactly one writer of
// this package; closing that writer closes the files. ReadAhead fails only if r does.
func ReadAhead(r io.Reader, o Options) (*Ahead, error) {
	o.Ahead = nil
	t := newTracker(&o)
	t.reads = true
	a := &Ahead{processes: []*process{t.cur}, files: t.files, answers: t.answers}
	reader := NewReader(func(r *Record) error {
		switch t.changeProcess(r) {
		case begins:
			if len(a.processes) < maxProcesses {
				a.processes = append(a.processes, t.cur)
			}
		case same:
			if !t.cur.learnHeader(r) && t.begun <= maxProcesses {
				t.cur.learn(r)
			}
		}
		return nil
	})
	if _, err := io.Copy(reader, r); err != nil {
		t.files.close()
		return nil, fmt.Errorf("read ahead: %w", err)
	}
	return a, reader.Close()
}
