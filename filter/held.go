package filter

// Held returns the number of processes of f that have modules, maps or an open hexdict, and about
// how many bytes of memory their contexts and the facts about raw backtraces take. It looks at all
// processes. It is for the goroutine that uses the Filter.
func Held(f *Filter) (processes int, bytes int64) {
	count := func(p *process) {
		if p.space.n > 0 || len(p.space.modules) > 0 || p.hex != nil {
			processes++
			bytes += int64(p.Size())
		}
	}
	if f.all == nil {
		count(f.process)
	}
	for _, p := range f.all {
		count(p)
	}
	if f.tracer != nil && !f.tracer.reader.Facts().Empty() {
		processes = max(1, processes)
		bytes += int64(f.tracer.reader.Facts().Size())
	}
	return processes, bytes
}

// SetLimits replaces [Options.Limits] for the processes that come from now on. It is for the
// goroutine that uses the Filter.
func SetLimits(f *Filter, l Limits) { f.limits = l.orDefault() }
