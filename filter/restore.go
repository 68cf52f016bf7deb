package filter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/sgr"
)

const (
	maxOpenLine    = 64 << 10 // bytes held back for a module line; a longer one is printed at once
	maxIdleContext = 32 << 20 // bytes of a checkpoint for all processes except the current one
)

// A savedFilter is the state of a Filter that a restart must not lose.
type savedFilter struct {
	Version int          `json:"v"`
	Line    int64        `json:"line"`
	Turn    uint64       `json:"turn,omitempty"`
	Grown   int          `json:"grown,omitempty"`
	Began   int          `json:"began,omitempty"`
	Process savedProcess `json:"process"` // the current process
	// all processes but the current one, each a savedProcess, most recently used first
	Idle checkpoint.List[json.RawMessage] `json:"idle,omitempty"`
	Held *savedLine                       `json:"held,omitempty"`
	// text of the held lines, which are not counted in Line
	Trace  checkpoint.Text `json:"trace,omitempty"`
	Traces *savedTraces    `json:"traces,omitempty"`
	// set by AppendProcesses, instead of Traces
	Facts *savedFacts `json:"facts,omitempty"`
	Tail  *savedTail  `json:"tail,omitempty"`
	Long  *savedLong  `json:"long,omitempty"`
}

type savedProcess struct {
	Key  checkpoint.Text `json:"key,omitempty"`
	Used uint64          `json:"used,omitempty"`
	savedContext
}

// A savedLine is the module line that is collecting its maps.
type savedLine struct {
	Line    int64                            `json:"line"`
	ID      uint64                           `json:"id"` // ID of a module in the current process
	Adds    bool                             `json:"adds,omitempty"`
	Raw     checkpoint.Text                  `json:"raw,omitempty"`
	Before  checkpoint.Text                  `json:"before,omitempty"`
	After   checkpoint.Text                  `json:"after,omitempty"`
	EOL     checkpoint.Text                  `json:"eol,omitempty"`
	Color   checkpoint.Text                  `json:"color,omitempty"` // colour sequence
	Process checkpoint.Text                  `json:"process,omitempty"`
	Maps    checkpoint.List[savedRange]      `json:"maps,omitempty"`
	Records checkpoint.List[json.RawMessage] `json:"records,omitempty"` // null for the module
}

// A savedTail is the unfinished last line.
type savedTail struct {
	Text   checkpoint.Text `json:"text"`
	Passed int             `json:"passed,omitempty"`
	Skip   int             `json:"skip,omitempty"`
}

// A savedLong is an unfinished last line that is too long to interpret.
type savedLong struct {
	// Cut has the start of an incomplete rune, followed by the start of a colour sequence.
	Cut checkpoint.Text `json:"cut,omitempty"`
}

// AppendContext appends the context of the log so far, as JSON on one line without a line end.
// After [Filter.Restore] of this context, a new Filter with the same options prints the rest of the
// log exactly like this Filter. This includes the open module line. AppendContext may be called
// between any two calls of Write, and between calls of Text and Element at the end of a line.
//
// The context takes about 70 bytes for a map and 100 for a module, 10 KiB in most logs. A process
// at its limits, 65,536 modules and 262,144 maps, takes 30 to 100 MiB. The other processes together
// take at most 32 MiB: beyond this, the longest idle ones are omitted.
func (f *Filter) AppendContext(dst []byte) []byte {
	s := savedFilter{
		Version: checkpoint.Version,
		Line:    f.line, Turn: f.turn, Grown: f.grown, Began: f.began,
		Process: f.process.saved(),
		Idle:    f.savedIdle(),
	}
	if f.open != nil {
		s.Held = f.savedOpen(f.open)
	}
	if s.Traces = f.tracer.saved(); f.tracer.isBuffering() {
		s.Trace = f.tracer.bufferedText()
	}
	if tail, long := f.cut.Unfinished(); long {
		s.Long = &savedLong{slices.Concat(f.layout.Visible.Cut, f.longCut)}
	} else if len(tail) > 0 {
		s.Tail = &savedTail{tail, f.flushed.text, f.flushed.laid}
	}
	return checkpoint.Append(dst, s)
}

func (p *process) saved() savedProcess {
	return savedProcess{checkpoint.Text(p.key), p.used, p.Context.saved()}
}

// savedIdle returns all processes but the current one, most recently used first, up to
// maxIdleContext bytes.
func (f *processes) savedIdle() (all []json.RawMessage) {
	var idle []*process
	for _, p := range f.all {
		if p != f.process {
			idle = append(idle, p)
		}
	}
	slices.SortFunc(idle, func(a, b *process) int {
		return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.key, b.key))
	})
	size := 0
	for _, p := range idle {
		saved := checkpoint.Append(nil, p.saved())
		if size += len(saved); size > maxIdleContext {
			break
		}
		all = append(all, saved)
	}
	return all
}

func (f *printing) savedOpen(m *moduleLine) *savedLine {
	s := &savedLine{
		Line: m.line, ID: m.mod.id, Adds: m.adds, Raw: m.raw, Before: m.before, After: m.after, EOL: m.eol,
		Color: sgr.AppendTransition(nil, sgr.State{}, m.state), Process: checkpoint.Text(m.process),
	}
	for _, v := range m.maps {
		s.Maps = append(s.Maps, v.saved())
	}
	p, ok := f.printer.(*jsonPrinter)
	if !ok {
		// another Printer's records may have any form, which the Printer of the next run may not
		// understand
		return s
	}
	for _, r := range m.records {
		if r.module != nil && r.module != m {
			r.appended = p.AppendElement(nil, r.module.element())
		}
		s.Records = append(s.Records, r.appended)
	}
	return s
}

var errNotNew = errors.New("the filter is not new")

// Restore sets the context of a new Filter from the output of [Filter.AppendContext]. It fails if
// something was written to the Filter, or if the context is damaged or from another version of
// symfilter. After an error the Filter must not be used: part of the context may be set. A context
// is not trusted: the Filter stays within its limits for logs. Restore begins the search for the
// modules' debug files.
//
// Without [Options.ProcessKey], only the process without a key is restored.
func (f *Filter) Restore(context []byte) error {
	err := errNotNew
	tail, long := f.cut.Unfinished()
	if f.line == 0 && len(tail) == 0 && !long && f.open == nil && len(f.sunk.pieces) == 0 {
		err = f.restore(context)
	}
	if err != nil {
		return fmt.Errorf("restore the context of a log: %w", err)
	}
	return nil
}

// restore sets the context of the Filter. It checks the facts, the state of traces and the
// unfinished line last, so an error may leave a part of the context set.
func (f *Filter) restore(context []byte) error {
	var s savedFilter
	if err := checkpoint.Decode(context, &s); err != nil {
		return err
	}
	processes, err := s.processes(max(f.limits.Processes, maxProcesses))
	if err != nil {
		return err
	}
	var open *moduleLine
	if s.Held != nil {
		if open, err = s.Held.line(&processes[0].space, s.Line); err != nil {
			return err
		}
	}
	maxWeight := 2 * max(f.limits.weight(), maxHeld/weightBytes)
	if s.Line < 0 || s.Line == math.MaxInt64 || !between(s.Grown, maxWeight) || !between(s.Began, maxWeight) {
		return checkpoint.Damaged("the counters are out of range")
	}
	if n := len(s.Trace); n > maxFileBytes+maxLine || n > 0 && (s.Trace[n-1] != '\n' || f.tracer == nil) {
		return checkpoint.Damaged("the held backtrace is not valid")
	}
	f.line, f.turn = s.Line, s.Turn
	// the context may be from a Filter with another form of output
	_, json := f.printer.(*jsonPrinter)
	if f.open = open; open != nil && !json {
		open.records = nil
	}
	if open != nil && f.records != nil && len(open.records) == 0 {
		open.records = []record{{module: open}}
	}
	restoreProcesses(&f.lineFilter, processes, s.Grown, s.Began)
	if s.Facts != nil && f.tracer != nil {
		facts, err := s.Facts.facts()
		if err != nil {
			return err
		}
		f.tracer.reader.SetEarlierFacts(facts)
		f.factsAt = facts.Changes()
	}
	f.changed = false
	hold := func() { f.wholeLines(s.Trace) }
	if s.Traces == nil || f.tracer == nil {
		hold()
	} else if err := f.tracer.restore(s.Traces, hold); err != nil {
		return err
	}
	return f.restoreUnfinished(s.Long, s.Tail)
}

// restoreUnfinished sets the unfinished last line. The lines before it have been restored.
func (f *Filter) restoreUnfinished(l *savedLong, t *savedTail) error {
	if l != nil {
		rune, sequence := []byte(l.Cut), []byte(nil)
		if i := bytes.IndexByte(rune, esc); i >= 0 {
			rune, sequence = rune[:i:i], rune[i:]
		}
		if len(rune) > 3 || len(sequence) > 2*maxLongCut || t != nil {
			return checkpoint.Damaged("the unfinished long line is not valid")
		}
		f.cut.Resume(nil, true)
		f.layout.Visible.Cut, f.longCut = rune, sequence
	}
	if t != nil {
		if len(t.Text) > maxLine || bytes.IndexByte(t.Text, '\n') >= 0 || !between(t.Passed, len(t.Text)) || !between(t.Skip, maxOpenLine+16*maxLine) {
			return checkpoint.Damaged("the unfinished last line is not valid")
		}
		f.cut.Resume(t.Text, false)
		f.flushed = flushed{text: t.Passed, laid: t.Skip}
	}
	return nil
}

// processes returns the processes in s, the current one first. It fails if a process is damaged, or
// if there are more processes than the argument most.
func (s *savedFilter) processes(most int) ([]*process, error) {
	keys := make(map[string]bool)
	var all []*process
	size := 0
	for i := range 1 + len(s.Idle) {
		from := s.Process
		if i > 0 {
			size += len(s.Idle[i-1])
			from = savedProcess{}
			if err := checkpoint.Part(s.Idle[i-1], &from); err != nil {
				return nil, err
			}
		}
		p := &process{key: string(from.Key), used: from.Used}
		if i >= most || size > maxIdleContext || len(p.key) > maxKey || keys[p.key] {
			return nil, checkpoint.Damaged("process %d of %d, %.20q, is repeated or exceeds a limit", i+1, 1+len(s.Idle), p.key)
		}
		keys[p.key] = true
		var err error
		if p.Context, err = from.context(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// line returns the module line that l describes. Its module must be in s, and its number at most
// last.
func (l *savedLine) line(s *space, last int64) (*moduleLine, error) {
	m := &moduleLine{
		mod: s.modules[l.ID], line: l.Line, adds: l.Adds, merges: true, raw: l.Raw, before: l.Before, after: l.After, eol: l.EOL,
		state: sgr.State{}.Apply(l.Color), process: string(l.Process),
	}
	if m.mod == nil || len(l.Raw) > maxRepeat || len(l.Before)+len(l.After) > maxOpenLine || len(l.EOL) > 2 || len(l.Process) > maxKey || len(l.Maps) > maxMerged {
		return nil, checkpoint.Damaged("the held line of module %d is not valid", l.ID)
	}
	if m.line < 0 || m.line > last {
		return nil, checkpoint.Damaged("the held line %d comes after line %d", m.line, last)
	}
	for _, r := range l.Maps {
		if !r.valid() {
			return nil, checkpoint.Damaged("the map [%#x-%#x] is not valid", r.Start, r.End)
		}
		m.maps = append(m.maps, r.interval(m.mod))
	}
	for _, object := range l.Records {
		switch {
		case string(object) == "null":
			m.records = append(m.records, record{module: m})
		case object[0] == '{':
			m.records = append(m.records, record{appended: object})
		default:
			return nil, checkpoint.Damaged("the element %.20q of the held line is not an object", object)
		}
	}
	return m, nil
}

// restoreProcesses sets the processes of the Filter, the current one first.
func restoreProcesses(f *lineFilter, processes []*process, grown, began int) {
	if f.o.ProcessKey == nil && !f.entered {
		for _, p := range processes {
			if p.key == "" {
				f.setProcess(p)
			}
		}
		processes = []*process{f.process}
	} else {
		f.setProcess(processes[0])
		f.grown, f.began = grown, began
		f.all = make(map[string]*process)
		for _, p := range processes {
			f.all[p.key] = p
		}
		f.evict()
	}
	now := time.Now()
	for _, p := range processes {
		if p.hex != nil && (f.all == nil || f.all[p.key] == p) {
			f.openDicts++
		}
		p.space.each(func(m *module) {
			m.awaited = f.patience.Name(m.buildID(), now)
			f.prefetch(m)
		})
	}
}
