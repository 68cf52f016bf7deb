package symbolize

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
)

// A crew reads the debug information of one file for several questions at once. These questions do
// not hold the entry's lock. A crew returns only complete answers without faults, and leaves other
// questions to the holder of the lock. So faults, strikes and answers do not depend on the number
// of readers, with one exception. Lookups ahead of the log add to the file's debt (history.owes) at
// once, so an expensive file may be set aside a few frames earlier.
//
// Lock order: an entry's lock before a reader's. A goroutine that holds a reader's lock may only
// try to lock an entry.
type crew struct {
	s       *Symbolizer
	e       *entry
	obj     *object.File
	table   *object.SymbolTable
	seed    *dwarf.Data // all readers are made from seed; seed itself does no lookups
	readers []crewReader
	// limit for owed. Beyond it, only the holder of the entry's lock reads the file, to find out
	// whether the file costs too much
	mayOwe int64

	done   atomic.Bool // set by retire and never cleared: no further lookup begins
	paused atomic.Bool // no lookup begins while paused is set

	// counts since the last join, which adds them to the totals of the module and of the entry
	lookups atomic.Int64
	cost    atomic.Int64 // nanoseconds
	steps   atomic.Int64 // steps beyond answerSteps for each lookup
	grown   atomic.Int64 // lookups; the footprint is taken at every accountEvery-th

	read atomic.Int64 // bytes of the file that all readers read since its pages were released
	owed atomic.Int64 // the crew's part of history.owes, in steps
	own  atomic.Int64 // bytes that the readers hold, without shared bytes
}

// A crewReader reads debug information for one goroutine at a time, and caches the names that it
// has read.
type crewReader struct {
	mu      sync.Mutex // held during a lookup
	dw      *dwarf.Data
	known   knownNames
	symbols knownNames
	loan    int64    // bytes lent for the current lookup
	own     int64    // bytes counted in crew.own
	_       [64]byte // padding: other goroutines write to the next reader
}

// MaxJobs bounds Options.Jobs: each reader has its own tables of names.
const MaxJobs = 64

// jobs returns the number of goroutines that may read one file at once.
func (o *Options) jobs() int {
	if o.Jobs > 0 {
		return min(o.Jobs, MaxJobs)
	}
	return min(runtime.GOMAXPROCS(0), MaxJobs)
}

// mayShare reports whether many goroutines can read m's debug information at once. Its sections
// must stay in memory, and no other table may have a better answer.
func (m *module) mayShare() bool {
	return m.dw != nil && m.index == nil && m.file == nil && m.table == nil && m.fault == nil && !m.packed && !m.inflated && !m.obj.Placed()
}

// gather makes a crew for e's module, if a crew can give the answers that the options select and
// several goroutines can read the file. It is called after the first lookup. e.mu is held.
func (e *entry) gather(s *Symbolizer) {
	m := e.module
	if m == nil || m.crew != nil || e.task != nil || s.o.jobs() < 2 || !s.o.byIndexAlone() || !m.mayShare() {
		return
	}
	seed := m.dw.Reader()
	if seed == nil {
		return
	}
	m.crew = &crew{s: s, e: e, obj: m.obj, table: m.obj.SymbolTable(), seed: seed, readers: make([]crewReader, s.o.jobs()-1)}
	m.crew.mayOwe = min(max(crewOwes, debugBytes(m.obj)/4), s.cache.memory.maxOwed/crewShare)
}

// retire stops new lookups permanently.
func (c *crew) retire() {
	if c != nil {
		c.done.Store(true)
	}
}

// pause stops new lookups if on is set, and allows them again otherwise. Lookups pause while an
// index is made: they would take processors from the indexer.
func (c *crew) pause(on bool) {
	if c != nil {
		c.paused.Store(on)
	}
}

// close retires the crew and waits for the running lookups. The caller holds no reader's lock.
func (c *crew) close() {
	if c == nil {
		return
	}
	c.retire()
	for i := range c.readers {
		r := &c.readers[i]
		r.mu.Lock()
		c.forget(r)
		r.mu.Unlock()
	}
}

// tryClose closes the crew unless a lookup is running, and reports whether it did. It never waits.
func (c *crew) tryClose() bool {
	if c == nil {
		return true
	}
	for i := range c.readers {
		if !c.readers[i].mu.TryLock() {
			for j := range i {
				c.readers[j].mu.Unlock()
			}
			return false
		}
	}
	c.retire()
	for i := range c.readers {
		c.forget(&c.readers[i])
		c.readers[i].mu.Unlock()
	}
	return true
}

// shrink frees the memory that idle readers do not share.
func (c *crew) shrink() {
	if c == nil {
		return
	}
	for i := range c.readers {
		if r := &c.readers[i]; r.mu.TryLock() {
			c.forget(r)
			r.mu.Unlock()
		}
	}
}

// forget frees the memory of r, which is locked.
func (c *crew) forget(r *crewReader) {
	c.own.Add(-r.own)
	r.dw, r.known, r.symbols, r.own = nil, knownNames{}, knownNames{}, 0
}

func (c *crew) footprint() int64 {
	if c == nil {
		return 0
	}
	return c.own.Load()
}

// borrow returns a locked reader, or nil if all are in use or the crew is paused or retired.
func (c *crew) borrow() *crewReader {
	if c.paused.Load() || c.done.Load() {
		return nil
	}
	for i := range c.readers {
		r := &c.readers[i]
		if !r.mu.TryLock() {
			continue
		}
		if c.done.Load() {
			r.mu.Unlock()
			return nil
		}
		if r.dw == nil {
			r.dw = c.seed.Reader()
			r.dw.Afford(func(n int64) bool {
				ok := c.s.cache.take(n, &c.s.cache.memory.work, c.e) == nil
				if ok {
					r.loan += n
				}
				return ok
			})
		}
		return r
	}
	return nil
}

// code is question.code for an address with frames in debug information and a symbol that covers
// it. For other addresses, ok is false.
func (c *crew) code(dst []Frame, addr uint64) (frames []Frame, ok bool) {
	r := c.borrow()
	if r == nil {
		return dst, false
	}
	began := time.Now()
	start := len(dst)
	err := guard(func() error {
		var room [usualFrames]dwarf.Frame
		found, err := r.dw.Lookup(room[:0], addr)
		if err != nil || len(found) == 0 {
			return err
		}
		sym, covered := c.table.Symbol(addr)
		if !covered {
			return nil
		}
		dst = appendFrames(dst, found, &c.s.names, &r.known, r.dw)
		v := named(&r.symbols, &c.s.names, sym)
		dst[len(dst)-1].takeName(&v.Frame)
		ok = true
		return nil
	})
	if err != nil { // the question that holds the lock reads this unit, and reports its faults
		c.retire()
		dst, ok = dst[:start], false
	}
	c.settle(r, time.Since(began))
	return dst, ok
}

// settle adds the cost of a lookup by r to the crew's totals and releases r.
func (c *crew) settle(r *crewReader, took time.Duration) {
	s, m := c.s, &c.s.cache.memory
	steps, _ := r.dw.Spent()
	c.steps.Add(steps - answerSteps)
	switch owed := c.owed.Add(steps - answerSteps); {
	case owed > c.mayOwe:
		c.retire()
	case owed < 0:
		c.owed.Store(0)
	}
	c.touched(r.dw.Read())
	own := r.dw.Footprint() + r.known.size + r.symbols.size
	c.own.Add(own - r.own)
	r.own = own
	loan := r.loan
	r.loan = 0
	r.mu.Unlock()

	c.lookups.Add(1)
	c.cost.Add(int64(took))
	s.cache.clock.Add(1)
	if c.grown.Add(1)%accountEvery == 0 || loan > 0 || took > accountSpent {
		if e := c.e; e.mu.TryLock() {
			if e.module != nil && e.module.crew == c {
				s.cache.account(e)
			}
			e.mu.Unlock()
		}
		m.give(loan, &m.work)
		s.cache.relieve()
	}
}

const (
	// a file that owes more than 1/crewShare of maxOwed gets a single reader
	crewShare = 4
	// steps that even a small file may owe before it gets a single reader
	crewOwes = 16 * answerSteps
)

// touched is module.touched for all readers of the file.
func (c *crew) touched(n int64) {
	if all := c.read.Add(n); all > pagesKept && c.read.CompareAndSwap(all, 0) {
		c.obj.ReleasePages()
	}
}

// join moves the crew's totals into m's usage and e's debts; e.mu is held.
func (m *module) join(e *entry) {
	c := m.crew
	if c == nil || c.lookups.Load() == 0 {
		return
	}
	m.lookups += int(c.lookups.Swap(0))
	m.cost += time.Duration(c.cost.Swap(0))
	e.owes = max(0, e.owes+c.steps.Swap(0))
}

// byCrew answers a code question with the crew of e's file, if it has one.
func (e *entry) byCrew(dst []Frame, addr uint64) (frames []Frame, ok bool) {
	c := e.crew.Load()
	if c == nil {
		return dst, false
	}
	if dst, ok = c.code(dst, addr); ok {
		e.used.Store(c.s.cache.clock.Load())
	}
	return dst, ok
}

// besideCode returns the frames at l if they are available at once: from an index, or from an idle
// reader of the file's crew. Other questions about the file do not wait for it, except for lookups
// in the same unit. If ok is false, code may still have an answer.
func (s *Symbolizer) besideCode(dst []Frame, l Location) (frames []Frame, ok bool) {
	e := s.cache.existing(l.ID, l.Name)
	if e == nil {
		return dst, false
	}
	if frames, ok := s.byIndex(e, dst, l.Addr); ok {
		return frames, true
	}
	return e.byCrew(dst, l.Addr)
}
