package symbolize

import "sync/atomic"

type counts struct {
	byIndex  atomic.Int64
	searches atomic.Int64
	faults   atomic.Int64
	closed   atomic.Int64
}

// Stats describe a Symbolizer: its current state, and its counts since New.
type Stats struct {
	// Modules named in questions, by state. Busy modules are answering a question. Idle modules
	// have neither an open file nor a search.
	Answering, Searching, Missing, SetAside, Idle, Busy int64

	Warming int64 // questions that wait for the background

	OpenFiles   int64 // open files, mapped or in memory
	HeapBytes   int64 // parsed units, names, and answers
	MappedBytes int64 // inflated sections, outside of the Go heap if the system allows it
	WorkBytes   int64 // memory lent by Take and to lookups, and for making indexes
	Budget      int64 // limit of all bytes: Options.MaxMemory less the limit of indexes in memory

	Questions int64 // questions about modules; a question that waits is counted several times
	IndexHits int64 // questions answered by an index alone
	Searches  int64 // searches for files
	Faults    int64 // times that a file broke its reader, could not be used, or cost too much
	Closed    int64 // files closed to save memory
}

// Stats returns the state of s. It never waits, and many goroutines may call it. The numbers are
// read one after the other, not at the same moment.
func (s *Symbolizer) Stats() (to Stats) {
	m, n := &s.cache.memory, &s.cache.counts
	to = Stats{
		OpenFiles: m.mapped.Load(), HeapBytes: m.heap.Load() + m.names.Load(), MappedBytes: m.sections.Load(), WorkBytes: m.work.Load(), Budget: m.budget,
		Questions: int64(s.cache.clock.Load()), IndexHits: n.byIndex.Load(), Searches: n.searches.Load(), Faults: n.faults.Load(), Closed: n.closed.Load(),
	}
	s.warmer.mu.RLock()
	to.Warming = int64(len(s.warmer.queue))
	s.warmer.mu.RUnlock()
	for _, e := range s.cache.all() {
		if !e.mu.TryLock() {
			to.Busy++
			continue
		}
		switch {
		case e.state == answering:
			to.Answering++
		case e.task != nil:
			to.Searching++
		case e.state == missing:
			to.Missing++
		case e.state == setAside:
			to.SetAside++
		default:
			to.Idle++
		}
		e.mu.Unlock()
	}
	return to
}
