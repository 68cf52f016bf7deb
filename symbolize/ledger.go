package symbolize

// Take reports whether n more bytes of Options.MaxMemory are granted to the caller, for what it
// holds beside the Symbolizer. What was used least recently is given up for them if need be, but
// for that there is no waiting. The caller gives them back with Give. Many goroutines may call it.
func (s *Symbolizer) Take(n int64) bool { return s.lend(n) }

// Give takes back n bytes that Take granted.
func (s *Symbolizer) Give(n int64) { s.memory.give(n, &s.memory.work) }
