package filter

import (
	"bytes"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// Lines filters records of many logs, each with its log's Context, which the caller keeps. No part
// of a record is held back for the next record. One goroutine at a time may use Lines; several
// Lines may share a Cache. The recent answers take about 150 KiB, and as much again for raw
// backtraces, whatever the number of Contexts.
type Lines struct {
	f       *Filter
	dst     []byte
	process process  // process of the current record
	last    *Context // context of the last record
	stats   Stats
}

// An Outcome is the result of filtering one record.
type Outcome struct {
	Elements   int  // well-formed elements and raw backtrace frames
	Resolved   int  // addresses with a name
	Unresolved int  // addresses without a name
	Pending    int  // unresolved addresses whose debug file is still being searched
	Changed    bool // the Context has changed and should be saved
	Contextual bool // the record has only contextual elements, and no output
	InDict     bool // a hexdict is open: any next record of the log may be part of it
}

// NewLines returns Lines with the options o. It ignores ProcessKey, since a Context is for one
// process, and Emit, since Append returns the output. It prints text instead of calling a
// LogPrinter, since a record is not a log.
func NewLines(o Options) *Lines {
	l := new(Lines)
	o.ProcessKey = nil
	if _, ok := o.Printer.(LogPrinter); ok {
		o.Printer = nil
	}
	o.Emit = func(_ int64, out []byte) error {
		l.dst = append(l.dst, out...)
		return nil
	}
	l.f = New(nil, o)
	return l
}

// Append appends a record, symbolized, to dst and returns the extended slice. The record has one or
// more lines; the output's last line has a line end only if the record's has one. Maps after a
// module in the same record are printed with the module. Append changes c, which must not be copied
// while it is in use. Line numbers in diagnostics count from the start of the record.
func (l *Lines) Append(dst []byte, c *Context, record []byte) ([]byte, Outcome) {
	f := l.f
	l.enterContext(c)
	l.dst = dst
	f.now, f.line, f.of = 0, 0, 0
	f.changed, f.elements, f.answerCounts = false, 0, answerCounts{}
	failed := f.failed
	i := bytes.LastIndexByte(record, '\n') + 1
	f.guardedBlock(record[:i])
	if rest := record[i:]; len(rest) > maxLine {
		f.plain(rest, 0)
	} else if len(rest) > 0 {
		f.guardedLine(rest)
	}
	f.release()
	l.keepFacts()
	f.tracer.forget()
	f.closeModule()
	f.send()
	f.layout.Visible.Cut = nil
	got := Outcome{
		Elements: f.elements, Resolved: f.answered, Unresolved: int(f.failed - failed), Pending: f.pending,
		Changed:    f.changed,
		Contextual: len(l.dst) == len(dst) && len(record) > 0,
		InDict:     f.openDicts > 0,
	}
	s := &l.stats
	s.Lines += f.line
	s.Elements += int64(got.Elements)
	s.Resolved += int64(got.Resolved)
	s.Unresolved += int64(got.Unresolved)
	s.Pending += int64(got.Pending)
	s.Early = f.early
	s.Proofs.Add(f.proofs)
	s.NoCode.Add(f.noCode)
	s.Outcomes.Add(&f.outcomes)
	*c, l.process.Context = l.process.Context, Context{}
	dst, l.dst = l.dst, nil
	return dst, got
}

// Until bounds the time for the next records. Append leaves opening, inflating and parsing debug
// files to other goroutines, and waits for them at most until t. An address without an answer at t
// stays unresolved, but the search for its answer continues. The zero time, the default, means no
// bound: see [Patience].
func (l *Lines) Until(t time.Time) { l.f.until, l.f.patience.Until = t, t }

// keepFacts stores the facts of the current record in its Context.
func (l *Lines) keepFacts() {
	t := l.f.tracer
	if t == nil || t.reader.Facts().Empty() {
		return
	}
	p := &l.process.Context
	if p.facts == nil || p.facts.Changes() != t.reader.Facts().Changes() {
		l.f.changed = true
	}
	facts := *t.reader.Facts()
	p.facts = &facts
}

// Unresolved is [Filter.Unresolved] for all records.
func (l *Lines) Unresolved() (modules []symbolize.Unresolved, elements int64) {
	return l.f.Unresolved()
}

// enterContext makes c the Context of the current record.
func (l *Lines) enterContext(c *Context) {
	f := l.f
	l.process.Context = *c
	p := &l.process.Context
	if p.by != l { // the modules refer to the waits and the cache of the previous Lines
		keep := p.cache == f.cached
		p.space.each(func(m *module) {
			m.awaited = nil
			if !keep {
				m.cached.Store(0)
			}
			if p.by == nil {
				f.prefetch(m)
			}
		})
		p.by, p.cache = l, f.cached
		l.last = nil
	}
	if f.tracer != nil && p.facts != nil {
		f.tracer.reader.SetEarlierFacts(*p.facts)
	}
	f.process, f.space, f.openDicts = &l.process, &p.space, 0
	if p.hex != nil {
		f.openDicts = 1
	}
	if l.last != c {
		f.forgetRecent()
		l.last = c
	}
}
