package filter

import "github.com/symfilter/symfilter/internal/checkpoint"

// Enter names the process of the next lines of f by its key; [Options.ProcessKey] is not used from
// then on. Callers call it between lines, the first time before the first line and before
// [Filter.Restore]. If the key differs from that of the current process, the lines of that process
// that are held back are printed first.
func Enter(f *Filter, key []byte) {
	f.entered, f.o.ProcessKey = true, nil
	if key = shortKey(key); f.process.key != string(key) {
		f.tracer.release()
		f.closeModule()
	}
	enterKey(&f.lineFilter, key)
}

// AppendProcesses appends the context of the processes of f so far, in a form that [Filter.Restore]
// reads: modules, maps, open hexdicts, and facts about modules of raw backtraces. It leaves out the
// unfinished last line, lines that are held back, and line numbers. So it is for a log whose next
// part is a stream of its own, as of a pipe whose reader is started again.
func AppendProcesses(f *Filter, dst []byte) []byte {
	s := savedFilter{
		Version: checkpoint.Version,
		Turn:    f.turn, Grown: f.grown, Began: f.began,
		Process: f.process.saved(),
		Idle:    f.savedIdle(),
	}
	if f.tracer != nil {
		s.Facts = factsSaved(f.tracer.reader.Facts())
	}
	return checkpoint.Append(dst, s)
}

// ProcessesChanged reports whether the output of AppendProcesses has changed since the last call of
// ProcessesChanged, other than by the order in which processes were used. It costs little.
func ProcessesChanged(f *Filter) bool {
	changed := f.changed
	f.changed = false
	if f.tracer != nil {
		n := f.tracer.reader.Facts().Changes()
		changed = changed || n != f.factsAt
		f.factsAt = n
	}
	return changed
}
