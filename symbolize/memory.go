package symbolize

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/object"
)

// memory is the ledger of the bytes that all files of a Symbolizer hold, and their budget. Bytes
// for inflated sections and for making an index are granted in advance. Parsed units and names are
// counted after the lookup that made them.
type memory struct {
	limits

	heap     atomic.Int64 // bytes, the sum of the entries' heap and the answers of the warmer
	sections atomic.Int64 // bytes granted to files for sections
	work     atomic.Int64 // bytes granted to work in progress
	mapped   atomic.Int64 // open files
	byFD     atomic.Int64 // open files that hold a descriptor
	names    *atomic.Int64

	granting sync.Mutex
	freed    chan struct{} // closed when memory is given back; nil if no goroutine waits
	most     int64         // peak of the bytes held, sampled at each grant; for tests

	// below this many bytes, another trim would free nothing, since one busy file may exceed the
	// budget by itself
	enough atomic.Int64

	trimming sync.Mutex
	running  chan struct{} // a token for each file being inflated; at most maxInflating
	turn     chan struct{} // held by the one goroutine that waits for memory; others queue for it

	outside outside
}

type limits struct {
	budget int64 // bytes of memory
	// bytes of budget that are never granted, since some memory is counted only after its use
	spare     int64
	inline    int64 // most bytes that are inflated while a line waits
	maxOwed   int64 // most steps that a file may owe
	maxMapped int64
	maxByFD   int64
	wholeUpTo int64 // most bytes of a file that is read whole
}

// outside reports the bytes of inflated sections, which are outside the Go heap, to
// Options.OffHeap.
type outside struct {
	mu       sync.Mutex
	reported int64       // bytes
	report   func(int64) // nil if not wanted
}

func (m *memory) init(o *Options, names *atomic.Int64) {
	m.budget, m.maxMapped, m.maxByFD = o.MaxMemory, maxMapped, maxOpenFiles
	m.wholeUpTo = maxWhole
	m.spare, m.inline, m.maxOwed = m.budget/spareShare, maxInline, maxOwed
	m.names, m.outside.report = names, o.OffHeap
	m.turn, m.running = make(chan struct{}, 1), make(chan struct{}, maxInflating)
	if !object.OffHeap {
		m.outside.report = nil
	}
}

// held returns the number of bytes that are in use and count against the budget.
func (m *memory) held() int64 {
	return m.heap.Load() + m.sections.Load() + m.work.Load() + m.names.Load()
}

// whole returns the current limit, in bytes, for files that are read whole. A file read whole takes
// memory of this process, while the pages of a mapped file belong to the system.
func (m *memory) whole() int64 {
	if m.held() > m.budget/wholeShare {
		return 0
	}
	return m.wholeUpTo
}

// limit returns the number of bytes that may be granted in all.
func (m *memory) limit() int64 { return m.budget - m.spare }

// take grants n bytes, counted in where, if the budget allows.
func (m *memory) take(n int64, where *atomic.Int64) bool {
	m.granting.Lock()
	held := m.held() + n
	ok := n >= 0 && held <= m.limit()
	if ok {
		where.Add(n)
		m.most = max(m.most, held)
	}
	m.granting.Unlock()
	if ok {
		m.reportSections()
	}
	return ok
}

// give returns n bytes that take granted.
func (m *memory) give(n int64, where *atomic.Int64) {
	where.Add(-n)
	m.granting.Lock()
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
	m.granting.Unlock()
	m.reportSections()
}

// nextFreed returns a channel that is closed when memory is given back.
func (m *memory) nextFreed() <-chan struct{} {
	m.granting.Lock()
	defer m.granting.Unlock()
	if m.freed == nil {
		m.freed = make(chan struct{})
	}
	return m.freed
}

// reportSections reports the bytes held outside the heap if they have changed by tellEvery.
func (m *memory) reportSections() {
	o := &m.outside
	if o.report == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := m.sections.Load()
	if d := now - o.reported; d >= tellEvery || d <= -tellEvery {
		o.reported = now
		o.report(now)
	}
}

func (m *memory) shortage(n int64) error {
	return fmt.Errorf("%w: %d MiB are needed; %d of %d are in use", object.ErrMemory, n>>20, m.held()>>20, m.budget>>20)
}

// take grants n bytes and counts them in where. If necessary, it first releases memory of entries
// other than self: see makeRoom. It does not wait. The caller may hold an entry's lock.
func (c *cache) take(n int64, where *atomic.Int64, self *entry) error {
	m := &c.memory
	if m.take(n, where) {
		return nil
	}
	if n <= m.limit() { // otherwise closing files would not be enough
		if c.makeRoom(n, self); m.take(n, where) {
			return nil
		}
	}
	return m.shortage(n)
}

// takeNow grants n bytes for sections. It is the Take of object.Options.
func (c *cache) takeNow(n int64) error { return c.take(n, &c.memory.sections, nil) }

// lend grants n bytes for tables that a lookup makes. At the end of the question, repay gives these
// bytes back and counts the tables as part of the entry. Bytes lent to callers of Take are counted
// in memory.work until Give.
func (c *cache) lend(n int64) bool { return c.take(n, &c.memory.work, nil) == nil }

// repay counts the tables that a lookup made as bytes of e, and gives back the bytes that lend
// granted for them. e.mu is held.
func (c *cache) repay(e *entry) {
	m := e.module
	if m == nil || m.loan == 0 {
		return
	}
	c.account(e)
	c.memory.give(m.loan, &c.memory.work)
	m.loan = 0
}

func (c *cache) give(n int64) { c.memory.give(n, &c.memory.sections) }

// makeRoom releases the least recently used memory until n bytes may be granted: parsed units
// first, then files. It skips self and every locked entry, and never waits. Many goroutines may
// call it, even during a trim.
func (c *cache) makeRoom(n int64, self *entry) {
	m := &c.memory
	enough := func() bool { return m.held()+n <= m.limit() }
	entries := c.byUse()
	for _, giveUp := range []func(*entry){c.shrink, c.evict} {
		for _, e := range entries {
			if enough() {
				return
			}
			if e.entry != self && e.mu.TryLock() {
				giveUp(e.entry)
				e.mu.Unlock()
			}
		}
	}
}

// shrink frees the parsed units and copied names of e's file; e.mu is held.
func (c *cache) shrink(e *entry) {
	if e.module == nil || e.module.dw == nil || e.heap < smallHeap {
		return
	}
	c.shrinkTo(e, 0)
}

func (c *cache) shrinkTo(e *entry, footprint int64) {
	m := e.module
	m.known, m.symbols = knownNames{}, knownNames{}
	m.crew.shrink()
	m.index.forget()
	m.dw.Shrink(footprint)
	c.account(e)
}

// evict closes e's file, unless a pin or a running lookup keeps it open, or closing it frees too
// little. e.mu is held. A file with newly inflated sections is kept until its next answer, but at
// most for freshFor.
func (c *cache) evict(e *entry) {
	m := e.module
	if m == nil || m.pin.isHeld() || e.heap+m.granted() < smallHeap || m.inflated && m.lookups == m.lookupsThen && time.Since(m.inflatedAt) < freshFor {
		return
	}
	if !m.crew.tryClose() {
		return
	}
	if m.inflated {
		e.evicted.Add(1)
	}
	c.suspend(e)
}

// account updates the ledger to the bytes and files that e holds; e.mu is held.
func (c *cache) account(e *entry) {
	n := int64(entryCost + len(e.key.name))
	for _, name := range e.names {
		n += int64(len(name))
	}
	for _, a := range e.attempts {
		n += int64(attemptCost + len(a.Where) + len(a.Reason))
	}
	var open openFiles
	if e.module == nil {
		e.index.Store(nil)
		e.crew.Store(nil)
	} else {
		e.index.Store(e.module.index)
		e.crew.Store(e.module.crew)
		n += e.module.footprint()
		open = e.module.openFiles()
	}
	if n != e.heap {
		c.memory.heap.Add(n - e.heap)
		e.heap = n
	}
	if open != e.open {
		c.memory.mapped.Add(open.mapped - e.open.mapped)
		c.memory.byFD.Add(open.byFD - e.open.byFD)
		e.open = open
	}
}

func (c *cache) held() int64 { return c.memory.held() }

func (c *cache) over() bool {
	m := &c.memory
	return c.held() > max(m.budget, m.enough.Load()) || m.mapped.Load() > m.maxMapped || m.byFD.Load() > m.maxByFD
}

// relieve calls trim if memory or open files exceed their limits. The caller holds no entry's mu.
func (c *cache) relieve() {
	if c.over() {
		c.trim()
	}
}

// A usedEntry is an entry and the time of its last use.
type usedEntry struct {
	*entry
	used uint64
}

// byUse returns the present entries, the least recently used first.
func (c *cache) byUse() []usedEntry {
	var entries []usedEntry
	for _, e := range c.all() {
		entries = append(entries, usedEntry{e, e.used.Load()})
	}
	slices.SortFunc(entries, func(a, b usedEntry) int { return cmp.Compare(a.used, b.used) })
	return entries
}

// trim releases the least recently used memory. It begins with modules without a file, down to a
// sixteenth of the budget. Then it releases parsed units, then whole files. It stops at three
// quarters of the budget, to make the next trim rare. One goroutine at a time trims.
func (c *cache) trim() {
	m := &c.memory
	m.trimming.Lock()
	defer m.trimming.Unlock()
	if !c.over() {
		return // another goroutine has trimmed
	}
	entries := c.byUse()

	idle := int64(0)
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		e.mu.Lock()
		if idle += e.idle(); idle > m.budget/16 && e.idle() > 0 {
			idle -= e.idle()
			c.mu.Lock()
			c.remove(e.entry)
			c.mu.Unlock()
		}
		e.mu.Unlock()
	}

	goal := m.budget / 4 * 3
	for _, e := range entries {
		excess := c.held() - goal
		if excess <= 0 {
			break
		}
		e.mu.Lock()
		if e.module != nil && e.module.dw != nil {
			c.shrinkTo(e.entry, max(0, e.module.dw.Footprint()-excess))
		}
		e.mu.Unlock()
	}
	for i, e := range entries {
		last := i == len(entries)-1 // the file in use would only be opened again
		if last || c.held() <= goal && m.mapped.Load() <= m.maxMapped*3/4 && m.byFD.Load() <= m.maxByFD*3/4 {
			break
		}
		e.mu.Lock()
		if e.module != nil && !e.module.pin.isHeld() {
			c.suspend(e.entry)
		}
		e.mu.Unlock()
	}
	m.enough.Store(c.held() + m.budget/8)
}

// idle returns the number of bytes that forgetting e would free. It returns 0 if e has a file or a
// task. e.mu is held.
func (e *entry) idle() int64 {
	if e.module != nil || e.task != nil {
		return 0
	}
	return e.heap
}
