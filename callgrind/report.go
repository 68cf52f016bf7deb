package callgrind

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

// NewReport returns a writer that sums a profile and prints a report to w, in the form o.Output.
// o.Symbolizer resolves the profile's locations. The output Profile, and the costs of parts in
// JSON, are printed as each part ends. Close prints the rest. One goroutine at a time may use the
// writer.
func NewReport(w io.Writer, o Options) *Report {
	r := &Report{o: &o, in: inputs{diagnose: o.Diagnose}}
	r.chosen.parts, r.chosen.threads = o.Parts, o.Threads
	r.reader = newReader(r.addRecord, o.report().Report, o.Memory)
	r.m = newModel(r.reader)
	r.m.stacked = o.Output.isStacked()
	r.s = newSymbols(r.reader, &o)
	r.out = printer{w: w, members: o.Members}
	if o.Foreign != nil && o.Output == Table {
		r.reader.foreign = r.passForeign
	}
	switch o.Output {
	case JSON:
		r.m.keepJumps = true
	case Profile:
		r.m.keepJumps = true
		r.again = &rewriter{printer: &r.out, m: r.m, s: r.s, unresolved: make(map[nameID]int), named: make(map[nameID]int)}
	}
	return r
}

// A Report sums a profile and prints its report. See [NewReport].
type Report struct {
	reader *recordReader
	o      *Options
	m      *model
	s      *symbols
	out    printer
	again  *rewriter

	in     inputs
	chosen selection
	gate   gate

	object   nameID // object of the last line
	openLine bool   // the last line passed to Foreign has no line end
	missing  report.Missing
	failed   error
}

// Write reads the lines that end in p. It returns the first error of the output.
func (r *Report) Write(p []byte) (int, error) { return r.reader.Write(p) }

func (r *Report) addRecord(rec *record) error {
	if rec.Kind <= partRecord {
		r.endPart()
		if rec.Kind == documentRecord && r.again != nil && r.chosen.some() {
			r.again.lines = r.again.lines[:0]
		}
	}
	if !r.chosen.takes(rec) {
		return nil
	}
	r.in.costs = r.in.costs || rec.Kind >= costRecord
	if r.again != nil {
		r.again.keepHeader(rec)
	}
	// the search for the object's debug file runs while the rest is read
	if rec.Kind == costRecord && rec.Object != r.object {
		r.object = rec.Object
		r.s.objects.file(rec.Object)
	}
	if err := r.m.addRecord(rec); err != nil {
		return err
	}
	return r.out.err
}

// endPart ends a part, and prints it if the output is printed part by part.
func (r *Report) endPart() {
	if !r.m.sums.begun {
		if r.chosen.some() {
			r.dropPart()
		}
		return
	}
	r.m.endPart()
	if r.again != nil {
		r.again.part(r.m.sums.endedSummary, r.m.sums.endedTotals)
	} else if r.o.Output == JSON {
		r.jsonPart()
	}
	r.m.head.endPart()
}

// passForeign writes a line, or a part of one, to Foreign.
func (r *Report) passForeign(line []byte) error {
	r.openLine = len(line) == 0 || line[len(line)-1] != '\n'
	_, err := r.o.Foreign.Write(line)
	return err
}

// endForeign closes Foreign. If a table follows and the last line has no line end, endForeign adds
// a line end first.
func (r *Report) endForeign() error {
	if r.reader.foreign == nil {
		return nil
	}
	if r.openLine && len(r.reader.Events()) > 0 {
		if _, err := io.WriteString(r.o.Foreign, "\n"); err != nil {
			return err
		}
	}
	return r.o.Foreign.Close()
}

// Close prints the report. It does not close the writer. It returns the first error of reading, of
// the writer, or of the options: an [EventError], a [PartError] or [ErrMemory].
func (r *Report) Close() error {
	defer r.reader.share.Release()
	err := r.endReading()
	var v *resolution
	switch {
	case r.in.lines == 0:
		r.o.report().Report("not a profile: the file is empty (with --separate-threads=yes, Callgrind writes one file for each thread: FILE-01 and so on)")
	case r.chosen.missing(&r.failed):
	case len(r.reader.Events()) == 0:
	case r.o.Output.isStacked():
		v = r.resolved()
		r.failed = r.stacks(v)
	case r.again == nil:
		v = r.resolved()
		g := newGraph(v, r.m.sums.total)
		if r.o.Output == JSON {
			r.json(g)
		} else {
			r.table(g)
		}
	default:
		if r.again.lacking {
			r.o.report().Report(errNoAddresses)
		}
		r.countMissing(r.again.unresolved, r.again.named)
	}
	r.checkLimits(v)
	r.out.flush()
	r.account(v)
	switch {
	case err == nil && r.out.err != nil:
		err = r.out.err
	case err == nil:
		err = r.failed
	}
	return err
}

// resolved looks up all functions and places, after the last input.
func (r *Report) resolved() *resolution {
	r.m.widen(len(r.reader.Events())) // the last events may have no costs
	return resolve(r.m, r.s)
}

// account reports the functions that remain unresolved, and why. v may be nil.
func (r *Report) account(v *resolution) {
	if v != nil {
		r.countMissing(v.needed, v.named)
		if v.lacksAddresses() {
			r.o.report().Report(errNoAddresses)
		}
	}
	if strings.HasPrefix(r.m.head.creator, "xtree-") && r.reader.names.index[xtreeUnknown] != 0 {
		r.o.report().Report(errNoFrames)
	}
	unresolved := r.missing.List()
	r.s.objects.report(r.o, unresolved)
	r.missing.Pass(r.o.report())
}

// errNoAddresses advises how to get lines and inlined calls for stripped code.
const errNoAddresses = "costs of stripped code are exact by function only; for exact costs by line and inlined call, record with valgrind --tool=callgrind --dump-instr=yes"

// xtreeUnknown is the name of all stripped functions in reports of --xtree-memory and --xtree-leak.
const xtreeUnknown = "UnknownFn???"

// errNoFrames advises how to get a report with the addresses of stripped code.
const errNoFrames = "reports of --xtree-memory and --xtree-leak in Callgrind's format have no addresses of stripped code (" + xtreeUnknown + "); to get the names of this code, record with --xtree-memory-file=FILE.ms and run symfilter profile FILE.ms; for leaks, use Memcheck's --xml=yes"

// lacksAddresses reports whether a Callgrind profile lacks the addresses that --dump-instr=yes
// adds. It returns false if stripped code has at most a hundredth of the first event's costs.
func (v *resolution) lacksAddresses() bool {
	m := v.m
	if m.addresses() || !strings.HasPrefix(m.head.creator, "callgrind-") {
		return false
	}
	stripped := make([]bool, len(m.functions))
	for i, f := range m.functions {
		_, _, isHex := entry(m.r.Text(f.name))
		stripped[i] = isHex && v.needy[i]
	}
	var all, nameless int64
	for i := range m.costs.keys {
		for _, n := range m.costs.countsOf(i)[:min(1, m.costs.width)] {
			all = stacks.Plus(all, n)
			if stripped[m.costs.keys[i].from] {
				nameless = stacks.Plus(nameless, n)
			}
		}
	}
	return nameless > all/100
}

// countMissing adds the functions that got a name and the unresolved functions to r.missing. needed
// and named hold, for each object, the numbers of functions without a name, and of functions that
// got one.
func (r *Report) countMissing(needed, named map[nameID]int) {
	for _, n := range named {
		r.missing.Named += int64(n)
	}
	for _, n := range slices.Sorted(maps.Keys(needed)) {
		if f := r.s.objects.byName[n]; f != nil && needed[n] > 0 {
			r.missing.Add(f.Unresolved(int64(needed[n]), f.failed))
		}
	}
}

// A printer buffers output and writes it in large pieces.
type printer struct {
	w       io.Writer
	members []byte // members of each JSON object
	b       []byte
	err     error
}

// sendSize is the number of bytes that a printer collects before it writes.
const sendSize = 256 << 10

// send writes the buffer if it is large enough.
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
