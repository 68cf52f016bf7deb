package valgrind

import (
	"fmt"
	"io"

	"github.com/symfilter/symfilter/report"
)

// A tracker knows the processes of a report, and which of them speaks.
type tracker struct {
	o       *Options
	files   *files
	solver  solver
	begun   int        // documents
	open    []*process // that have begun and not ended; the innermost speaks
	closed  bool       // the document of the process that speaks has ended: a forked child goes on
	ahead   []*process // by the number of their document; 0 is what stands before the first
	cur     *process
	told    map[string]bool
	missing report.Missing
	answers *answerer
	looks   bool // ahead: no process is forgotten
	seen    seen
}

func newTracker(o *Options) *tracker {
	t := &tracker{o: o, told: make(map[string]bool)}
	t.solver = solver{maps: o.Maps, allowed: maxWork, demangle: func(s string) string { return s }}
	if o.Ahead != nil {
		t.ahead, t.files, t.answers = o.Ahead.processes, o.Ahead.files, o.Ahead.answers
	} else {
		t.files = &files{objects: report.NewObjects(&o.Options, maxOpen, true)}
		t.answers = newAnswerer(&o.Options)
	}
	if o.Symbolizer != nil {
		t.solver.answers = t.answers
		t.solver.demangle = o.Symbolizer.Demangle
	}
	t.cur = t.process()
	return t
}

// process returns the process of the document that begins.
func (t *tracker) process() *process {
	p := newProcess(t.files, t.begun)
	if t.begun < len(t.ahead) {
		p, t.ahead[t.begun] = t.ahead[t.begun], nil
		t.solver.solveAll(p)
	}
	t.begun++
	return p
}

// seen says what was in the input.
type seen struct{ text, elements bool }

// A turn says how a record changes which process speaks.
type turn uint8

const (
	same    turn = iota
	begins       // a process begins
	resumes      // one goes on that another interrupted
	ends         // its document ends
)

// turn notes that a document begins or ends.
func (t *tracker) turn(r *Record) turn {
	if r.Name == "" {
		t.seen.text = true
	} else {
		t.seen.elements = true
	}
	switch r.Name {
	case document:
		if n := len(t.open); n == 0 || t.open[n-1] != t.cur {
			t.forget(t.cur)
		}
		t.cur, t.closed = t.process(), false
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

// forget makes room of what is known of a process that has ended.
func (t *tracker) forget(p *process) {
	if !t.looks {
		t.files.kept -= p.kept
		p.kept = 0
	}
}

// learn takes the facts from a record, and looks for the places of the objects
// in it.
func (t *tracker) learn(r *Record) {
	t.solver.allowed += len(r.Frames) * frameWork
	if t.o.Ahead != nil && t.begun <= len(t.ahead) && !t.unplaced(r) {
		return // they are known
	}
	t.cur.learn(r)
	t.solver.solveAll(t.cur)
}

// unplaced reports whether a record has a frame in an object whose place is not
// known: the report may have grown since it was looked through.
func (t *tracker) unplaced(r *Record) bool {
	for i := range r.Frames {
		if f := &r.Frames[i]; f.Obj != nil && f.RawIP == nil && t.place(f) == nil {
			return true
		}
	}
	return false
}

// place returns where the object of a frame is; nil if that is not known.
func (t *tracker) place(f *Frame) *epoch {
	if f.Obj == nil || f.RawIP != nil {
		return nil
	}
	if o := t.cur.known(f.Obj); o != nil && o.file.Err == nil {
		return o.at(f.IP)
	}
	return nil
}

// at returns where the object was located when ip was an address in it; nil if that is not known.
// Code is preferred to data of another place.
func (o *loaded) at(ip uint64) (data *epoch) {
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

// tell says which objects stayed without a place, each once.
func (t *tracker) tell(p *process) {
	for _, o := range p.order {
		f := o.file
		for _, e := range o.epochs {
			said := ""
			switch {
			case e.located || f.Err != nil || e.isData(f):
			case e.stale:
				said = fmt.Sprintf("%s: %v", f.Path, errOtherFile)
			case e.mayBeData(f):
				said = fmt.Sprintf("%s: it is not known where it was loaded; --bias %s=0x… or --map says where", f.Path, base(o.name))
			default:
				said = fmt.Sprintf("%s: it may have been loaded at %d places; --bias %s=0x… or --map says where it was", f.Path, e.places(), base(o.name))
			}
			t.say(said)
		}
		if f.Err != nil {
			t.say(fmt.Sprintf("%.200s: %v; its frames stay as they are", f.Path, f.Err))
		}
	}
}

// end says what is to be said at the end of the report, and closes the files.
func (t *tracker) end() {
	for _, p := range t.open {
		t.tell(p)
	}
	t.tell(t.cur)
	if t.seen.text && !t.seen.elements {
		t.say("there is no report in it: valgrind writes one with --xml=yes --xml-file=FILE")
	}
	if t.o.Unresolved != nil {
		t.o.Unresolved(t.missing.List())
	}
	t.files.close()
}

func (t *tracker) say(s string) {
	if s != "" && !t.told[s] && len(t.told) < maxNames {
		t.told[s] = true
		t.o.Report(s)
	}
}

// Ahead is what a report says of where its objects were loaded.
type Ahead struct {
	processes []*process
	files     *files    // open
	answers   *answerer // with the patience of both readings
}

// ReadAhead reads a report for what it says of where its objects were loaded,
// so that its first frame can be told what its last one shows. o are those
// of the NewMarkup or NewReport that the Ahead is for: one of these must use
// it, once, and be closed.
func ReadAhead(r io.Reader, o Options) (*Ahead, error) {
	o.Ahead = nil
	t := newTracker(&o)
	t.looks = true
	a := &Ahead{processes: []*process{t.cur}, files: t.files, answers: t.answers}
	reader := NewReader(func(r *Record) error {
		switch t.turn(r) {
		case begins:
			if len(a.processes) < maxProcesses {
				a.processes = append(a.processes, t.cur)
			}
		case same:
			if !t.cur.header(r) && t.begun <= maxProcesses {
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
