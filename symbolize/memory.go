package symbolize

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// memory is the account of what the entries hold, and the budget for it.
type memory struct {
	budget    int64 // bytes of heap
	maxMapped int64
	maxByFD   int64

	heap   atomic.Int64 // bytes, the sum of the entries' heap
	mapped atomic.Int64 // files open
	byFD   atomic.Int64 // those of them that keep a descriptor

	// What one busy file needs may exceed the budget, whatever is given up
	// besides. Below enough, another trim would gain nothing.
	enough atomic.Int64

	trimming sync.Mutex
}

// account brings the sum up to date with what e holds; e.mu is held.
func (s *Symbolizer) account(e *entry) {
	n := int64(entryCost + len(e.key.name))
	for _, name := range e.names {
		n += int64(len(name))
	}
	for _, a := range e.attempts {
		n += int64(attemptCost + len(a.Where) + len(a.Said))
	}
	var open openFiles
	e.index.Store(nil)
	if e.module != nil {
		e.index.Store(e.module.index)
		n += e.module.footprint()
		open = e.module.openFiles()
	}
	if n != e.heap {
		s.memory.heap.Add(n - e.heap)
		e.heap = n
	}
	if open != e.open {
		s.memory.mapped.Add(open.mapped - e.open.mapped)
		s.memory.byFD.Add(open.byFD - e.open.byFD)
		e.open = open
	}
}

// held returns the heap bytes that count against the budget.
func (s *Symbolizer) held() int64 { return s.memory.heap.Load() + s.names.size.Load() }

// over reports whether there is more than the budget allows.
func (s *Symbolizer) over() bool {
	m := &s.memory
	return s.held() > max(m.budget, m.enough.Load()) || m.mapped.Load() > m.maxMapped || m.byFD.Load() > m.maxByFD
}

// relieve brings what is held back under the budget; no entry's mu is held.
func (s *Symbolizer) relieve() {
	if s.over() {
		s.trim()
	}
}

// trim gives up what was used least recently: first modules without a file,
// down to a sixteenth of the budget, then parsed units, which one
// lookup brings back, then whole files. It goes down to three quarters, so
// that it is not called again at once. One goroutine at a time trims.
func (s *Symbolizer) trim() {
	m := &s.memory
	m.trimming.Lock()
	defer m.trimming.Unlock()
	if !s.over() {
		return // another goroutine has trimmed
	}

	type open struct {
		*entry
		used uint64
	}
	var entries []open
	for _, e := range s.all() {
		entries = append(entries, open{e, e.used.Load()})
	}
	slices.SortFunc(entries, func(a, b open) int { return cmp.Compare(a.used, b.used) })

	idle := int64(0)
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		e.mu.Lock()
		if idle += e.idle(); idle > m.budget/16 && e.idle() > 0 {
			idle -= e.idle()
			s.mu.Lock()
			s.remove(e.entry)
			s.mu.Unlock()
		}
		e.mu.Unlock()
	}

	goal := m.budget / 4 * 3
	for _, e := range entries {
		excess := s.held() - goal
		if excess <= 0 {
			break
		}
		e.mu.Lock()
		if e.module != nil && e.module.dw != nil {
			e.module.known, e.module.symbols = knownNames{}, knownNames{}
			e.module.index.forget()
			e.module.dw.Shrink(max(0, e.module.dw.Footprint()-excess))
			s.account(e.entry)
		}
		e.mu.Unlock()
	}
	for i, e := range entries {
		last := i == len(entries)-1 // the file in use: closing it would only have it read again
		if last || s.held() <= goal && m.mapped.Load() <= m.maxMapped*3/4 && m.byFD.Load() <= m.maxByFD*3/4 {
			break
		}
		e.mu.Lock()
		s.suspend(e.entry)
		e.mu.Unlock()
	}
	m.enough.Store(s.held() + m.budget/8)
}

// idle returns the bytes held by an entry that can be forgotten; e.mu is held.
func (e *entry) idle() int64 {
	if e.module != nil || e.finding {
		return 0
	}
	return e.heap
}
