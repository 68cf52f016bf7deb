package filter

import "bytes"

// Lines filters records of many logs: each with the Context of its log, which the caller keeps.
// Nothing of a record is held back for the next one. One goroutine at a time may use it; for more,
// each needs Lines of its own, which may share a Cache. What Lines hold themselves, some 150 KiB of
// recent answers, does not grow with the number of Contexts.
type Lines struct {
	f       *Filter
	dst     []byte
	process process  // that of the current record
	last    *Context // of the last record
}

// An Outcome tells what a record held.
type Outcome struct {
	Elements   int  // well-formed elements
	Resolved   int  // addresses that were answered with a name
	Unresolved int  // addresses that were not
	Pending    int  // of the unresolved ones, those whose debug file is still being looked for
	Changed    bool // the Context is to be saved
	Contextual bool // nothing is printed on purpose: the record only told of modules, or less
	InDict     bool // the next record of the log may be part of a hexdict, whatever it holds
}

// NewLines returns Lines with these options; ProcessKey and Emit are not used, since each Context is
// that of one process, and Append returns the output.
func NewLines(o Options) *Lines {
	l := new(Lines)
	o.ProcessKey = nil
	o.Emit = func(_ int64, out []byte) error {
		l.dst = append(l.dst, out...)
		return nil
	}
	l.f = New(nil, o)
	return l
}

// Append appends a record, symbolized, to dst. The record is one line or several; the last may lack
// its line end, then so does the output. Maps that follow a module in the same record are shown with
// it, those of a later record on a line of their own. c is read and changed; it must not be copied
// while it is used. Line numbers of diagnostics count within the record.
func (l *Lines) Append(dst []byte, c *Context, record []byte) ([]byte, Outcome) {
	f := l.f
	l.enter(c)
	l.dst = dst
	f.now, f.line, f.of = 0, 0, 0
	f.changed, f.elements, f.answers = false, 0, answers{}
	failed := f.failed
	i := bytes.LastIndexByte(record, '\n') + 1
	f.lines(record[:i])
	if rest := record[i:]; len(rest) > maxLine {
		f.plain(rest, 0)
	} else if len(rest) > 0 {
		f.oneLine(rest)
	}
	f.closeModule()
	f.send()
	f.visible.cut = nil
	got := Outcome{
		Elements: f.elements, Resolved: f.named, Unresolved: int(f.failed - failed), Pending: f.pending,
		Changed:    f.changed,
		Contextual: len(l.dst) == len(dst) && len(record) > 0,
		InDict:     f.openDicts > 0,
	}
	*c, l.process.Context = l.process.Context, Context{}
	dst, l.dst = l.dst, nil
	return dst, got
}

// Unresolved is [Filter.Unresolved] for all records.
func (l *Lines) Unresolved() (modules []Unresolved, elements int64) { return l.f.Unresolved() }

// enter makes c the Context of the current record.
func (l *Lines) enter(c *Context) {
	f := l.f
	l.process.Context = *c
	p := &l.process.Context
	if p.by != l { // what others know of the modules is theirs
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
	f.process, f.space, f.openDicts = &l.process, &p.space, 0
	if p.hex != nil {
		f.openDicts = 1
	}
	if l.last != c {
		f.forgetRecent()
		l.last = c
	}
}
