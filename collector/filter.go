package collector

import (
	"context"
	"time"

	"github.com/symfilter/symfilter/filter"
)

const (
	// maxGap bounds the successive records without a mark within a raw trace: registers, notes
	// and empty lines.
	maxGap = 64

	// maxRun bounds the bytes of records filtered together. A larger record is filtered alone.
	maxRun = 4 << 20

	// unresolvedAttribute counts the addresses of a record that have no name.
	unresolvedAttribute = "symfilter.unresolved"
)

type counts struct{ filtered int64 }

// filter filters the texts of the batch, saves the changed contexts, and counts records and
// results.
func (w *worker) filter(ctx context.Context) {
	h := w.p.shared
	if most := w.p.cfg.Patience.longest(); most > 0 && h.symbols != nil {
		w.until(w.now.Add(most))
	}
	for i := range w.parts {
		w.stream(ctx, &w.parts[i])
	}
	h.save(ctx, w.changed)
	h.filtered.Add(w.counts.filtered)
	w.counts = counts{}
	now := w.outcomes()
	now.Sub(&w.before)
	h.add(&now)
	w.before.Add(&now)
}

// until sets the time after which the batch uses only files that are already read. It then waits
// for no other file, and opens, inflates and parses none.
func (w *worker) until(t time.Time) {
	w.end = t
	w.lines.Until(t)
	if w.traces != nil {
		w.traces.lines.Until(t)
	}
}

// outcomes returns the counts of all Lines of the worker.
func (w *worker) outcomes() filter.Outcomes {
	all := w.lines.Stats().Outcomes
	if w.traces != nil {
		of := w.traces.lines.Stats().Outcomes
		all.Add(&of)
	}
	return all
}

// noModule returns the number of addresses without a module so far, except in raw frames, which
// often have no module.
func (w *worker) noModule() (n int64) {
	all := w.outcomes()
	for origin := range filter.OriginRaw { // raw frames often have no module
		n += all[origin][filter.ResultNoModule]
	}
	return n
}

// stream filters the texts of one stream. Batches that share a stream wait here for each other.
func (w *worker) stream(ctx context.Context, p *part) {
	s, h := p.stream, w.p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	h.load(ctx, s)
	orphans := int64(0)
	if !s.warned {
		orphans = w.noModule()
	}
	r := run{w: w, s: s, dict: s.inDict}
	if p.raw && h.symbols != nil {
		r.together(p.first)
	} else {
		for i := p.first; i != 0; i = w.texts[i].next {
			r.single(&w.texts[i])
		}
	}
	if r.changed && !s.temp {
		h.take(s)
		w.changed = append(w.changed, s)
	}
	if r.unresolved && !s.warned {
		if n := w.noModule() - orphans; n > 0 {
			s.warned = true
			h.noModule(s.key, n)
		}
	}
	s.inDict = r.dict
	w.p.contexts.release(s, s.context.Size(), r.dict, w.now)
}

// A run filters the texts of one stream.
type run struct {
	w          *worker
	s          *stream
	dict       bool // a hexdict is open
	changed    bool // the context has changed
	unresolved bool // some addresses have no name
}

// single filters a text by itself.
func (r *run) single(t *text) {
	if !t.marked && !r.dict {
		return
	}
	w, c := r.w, &r.s.context
	if t.alone {
		w.own.Reset()
		c = &w.own
	}
	was := t.value.Str()
	w.answers.enter(t)
	out, got := w.lines.Append(w.out[:0], c, bytesOf(was))
	w.out = out
	w.counts.filtered++
	if len(out) > 0 && string(out) != was { // out is empty if the text only changed a context
		t.value.SetStr(string(out))
	}
	w.answers.leave()
	t.addUnresolved(int64(got.Unresolved))
	r.unresolved = r.unresolved || got.Unresolved > 0
	if !t.alone {
		r.changed = r.changed || got.Changed
		r.dict = got.InDict
	}
}

// addUnresolved adds n to the record's count of unnamed addresses. The first call for a body, which
// precedes the record's other texts, replaces the count of an earlier processor.
func (t *text) addUnresolved(n int64) {
	if n == 0 {
		return
	}
	if v, ok := t.record.Attributes().Get(unresolvedAttribute); ok && (t.counted || !t.body) {
		n += v.Int()
	}
	t.counted = true
	t.record.Attributes().PutInt(unresolvedAttribute, n)
}

// together filters the texts from the index first on, as the lines of one log. The frames of a raw
// backtrace are judged together, and may be in several records.
func (r *run) together(first int32) {
	w := r.w
	if w.traces == nil {
		w.traces = newTraces(w)
		w.traces.lines.Until(w.end)
	}
	// first text of the run, its last text with a mark, and the number of texts after that
	begin, last, gap := first, int32(0), 0
	flush := func(next int32) {
		if last != 0 {
			w.traces.filter(r, begin, last)
			begin = w.texts[last].next
		}
		for i := begin; i != next; i = w.texts[i].next { // filters only texts of a hexdict
			r.single(&w.texts[i])
		}
		begin, last, gap = next, 0, 0
		w.traces.size = 0
	}
	for i := first; i != 0; {
		t := &w.texts[i]
		next := t.next
		n := len(t.value.Str()) + 1
		switch {
		case !t.body || n > maxRun:
			flush(i)
			r.single(t)
			begin = next
		case !t.marked:
			w.traces.size += n
			if gap++; gap > maxGap {
				flush(next)
			}
		default:
			if w.traces.size += n; w.traces.size > maxRun {
				flush(i)
				w.traces.size = n
			}
			if last == 0 && gap > 0 { // unmarked texts before the first mark belong to no trace
				flush(i)
			}
			last, gap = i, 0
		}
		i = next
	}
	flush(0)
}
