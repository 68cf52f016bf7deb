package filter

// Stats counts what a Filter, or Lines, have done so far.
type Stats struct {
	Lines      int64 // of the log
	Elements   int64 // well-formed elements
	Resolved   int64 // addresses with a name
	Unresolved int64 // addresses without one, those outside of any module included
	Pending    int64 // of Unresolved: the debug file was still being looked for
	Evicted    int64 // processes that were dropped because of Options.Limits
	Keyed      int64 // lines that were searched for elements and have a key of Options.ProcessKey
}

// Stats returns the counts so far. It is for the goroutine that uses the Filter.
func (f *Filter) Stats() Stats {
	return Stats{
		Lines: f.line, Elements: int64(f.elements), Resolved: int64(f.named), Unresolved: f.failed,
		Pending: int64(f.pending), Evicted: f.evictions, Keyed: f.keyed,
	}
}

// Stats returns the counts of all records so far. It is for the goroutine that uses the Lines.
func (l *Lines) Stats() Stats { return l.stats }

// CacheStats describe a Cache.
type CacheStats struct {
	Bytes  int64 // held
	Budget int64 // bytes that it may hold
	Hits   int64 // questions with an answer; a Filter asks once for an address that it repeats
	Misses int64 // questions without one
}

// Stats returns the state of c. Many goroutines may call it.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{c.size + c.oldSize, c.budget, c.hits, c.misses}
}
