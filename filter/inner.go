package filter

import (
	"strings"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/marks"
	"github.com/symfilter/symfilter/internal/report"
)

func init() {
	access.Filter = func(f any) any {
		if f, ok := f.(*Filter); ok {
			return (*inner)(f)
		}
		return nil
	}
	access.Contexts = func(l any, evicted func(key, reason string)) any { return newContexts(l.(Limits), evicted) }
}

// The methods of inner are for the packages of this module: see [access.Filter]. Like a Filter's
// methods, they must be called by one goroutine at a time.
type inner Filter

// Line returns the number of lines so far, including held lines.
func (i *inner) Line() int64 {
	if i.tracer != nil {
		return i.tracer.next() - 1
	}
	return i.line
}

// HeldTrace returns the number of held lines of a raw backtrace at the end of the log so far.
func (i *inner) HeldTrace() int { return int(i.Line() - i.line) }

// HeldModule returns the number of the module line that is collecting its maps. Without such a
// line, it returns the number of the first held line of a raw backtrace, or 0. Lines that merge
// into a module line have no output of their own.
func (i *inner) HeldModule() int64 {
	if i.open == nil {
		return i.tracer.firstBuffered()
	}
	return i.open.line
}

// Unfinished reports whether Flush may print something: an unfinished last line, or held frames.
func (i *inner) Unfinished() bool {
	tail, _ := i.cut.Unfinished()
	return len(tail) > i.flushed.text || i.tracer.isBuffering() || i.layout.Display.Held() > 0
}

// Release prints the held lines of a raw backtrace, and the module line that is collecting its
// maps.
func (i *inner) Release() error {
	i.now = 0
	(*Filter)(i).release()
	i.closeModule()
	i.ready = i.layout.Display.EndTrace(i.ready)
	(*Filter)(i).send()
	return i.err
}

// EndBlock marks the end of a block of lines for Text and Element. After its first call, the Filter
// reads the clock once for each block, not for each line.
func (i *inner) EndBlock() { i.inBlocks, i.now = true, 0 }

// InDict reports whether a process has an open hexdict. If so, any next line may be part of it.
func (i *inner) InDict() bool { return i.openDicts > 0 }

// Wants reports whether any next line may be part of a hexdict or raw backtrace. If not, Text may
// take lines for which HasMark returns false.
func (i *inner) Wants() bool { return i.InDict() || i.tracer.wants() || firmware(i.tracer) }

// HasMark reports whether b, one or more whole lines, has a mark: the beginning of an element, or
// bytes that occur in frames of a dialect.
func (i *inner) HasMark(b []byte) bool {
	if i.tracer == nil {
		at, _ := marks.FindOpen(b)
		return at < len(b)
	}
	s := searchOf(i.tracer, b)
	at, _ := s.NextOf(0)
	return at < len(b)
}

// Enter sets the key of the next lines' process, and disables [Options.ProcessKey]. It is called
// between lines; the first call precedes the first line and [Filter.Restore]. A new key first
// prints the held lines of the current process.
func (i *inner) Enter(key []byte) {
	i.entered, i.o.ProcessKey = true, nil
	if key = shortKey(key); i.process.key != string(key) {
		(*Filter)(i).release()
		i.closeModule()
	}
	enterKey(&i.lineFilter, key)
}

// AddPackages adds the build IDs in text to the facts for raw backtraces around the current line.
// text is the field COREDUMP_PACKAGE_JSON of systemd-coredump's journal entry. Other text has no
// effect.
func (i *inner) AddPackages(text []byte) {
	if i.tracer != nil {
		i.tracer.reader.AddPackages(text)
	}
}

// AddProgram adds the program's path to the facts for raw backtraces around the current line.
func (i *inner) AddProgram(path string) {
	if strings.HasPrefix(path, "/") && i.tracer != nil {
		i.tracer.reader.AddModule(dialect.ModuleFact{Name: path, Main: true})
	}
}

// AppendProcesses appends the context of the processes so far, for Restore: modules, maps, open
// hexdicts, and facts about modules of raw backtraces. It leaves out unfinished and held lines, and
// line numbers: the log's next part may be a separate stream, such as a restarted reader's pipe.
func (i *inner) AppendProcesses(dst []byte) []byte {
	s := savedFilter{
		Version: checkpoint.Version,
		Turn:    i.turn, Grown: i.grown, Began: i.began,
		Process: i.process.saved(),
		Idle:    i.savedIdle(),
	}
	if i.tracer != nil {
		s.Facts = factsSaved(i.tracer.reader.Facts())
	}
	return checkpoint.Append(dst, s)
}

// ProcessesChanged reports whether the output of AppendProcesses has changed since the last call.
// It ignores the order in which processes were used, and costs little.
func (i *inner) ProcessesChanged() bool {
	changed := i.changed
	i.changed = false
	if i.tracer != nil {
		n := i.tracer.reader.Facts().Changes()
		changed = changed || n != i.factsAt
		i.factsAt = n
	}
	return changed
}

// Restore is [Filter.Restore].
func (i *inner) Restore(context []byte) error { return (*Filter)(i).Restore(context) }

// Weigh returns the number of processes with modules, maps or an open hexdict, at least 1 if there
// are facts about raw backtraces. bytes is the approximate memory of their contexts and of the
// facts. It examines all processes.
func (i *inner) Weigh() (processes int, bytes int64) {
	count := func(p *process) {
		if p.space.n > 0 || len(p.space.modules) > 0 || p.hex != nil {
			processes++
			bytes += int64(p.Size())
		}
	}
	if i.all == nil {
		count(i.process)
	}
	for _, p := range i.all {
		count(p)
	}
	if i.tracer != nil && !i.tracer.reader.Facts().Empty() {
		processes = max(1, processes)
		bytes += int64(i.tracer.reader.Facts().Size())
	}
	return processes, bytes
}

// SetLimits replaces [Options.Limits]. The new limits apply from the next change of process on, and
// may drop processes that exist already.
func (i *inner) SetLimits(l Limits) { i.limits = l.orDefault() }

// Patience returns the Filter's Patience. A reader of reports that writes to the Filter shares it,
// so the two do not wait one after the other.
func (i *inner) Patience() *report.Patience { return i.patience }
