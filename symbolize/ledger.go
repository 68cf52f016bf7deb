package symbolize

// Take reports whether n more bytes of Options.MaxMemory are granted to the caller, for memory that
// it holds beside the Symbolizer. It gives up the least recently used files for them if need be,
// and never waits. The caller returns the bytes with Give. Many goroutines may call it.
func (s *Symbolizer) Take(n int64) bool { return s.cache.lend(n) }

// Give takes back n bytes that Take granted.
func (s *Symbolizer) Give(n int64) { s.cache.memory.give(n, &s.cache.memory.work) }
