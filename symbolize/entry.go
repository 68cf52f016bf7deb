package symbolize

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// An entry holds the file of one module, or the reason why it has none. At most one task runs for
// it at a time.
type entry struct {
	key  key
	used atomic.Uint64 // cache.clock at the last question

	// the module's index, for questions that take no lock; nil if it has none
	index atomic.Pointer[indexed]
	crew  atomic.Pointer[crew] // the module's crew, also for questions that take no lock; nil if it has none

	mu     sync.Mutex // held while the module answers; guards the fields below
	state  state
	module *module // set in state answering only
	err    error   // set in states missing and setAside only
	task   *task   // the running search or inflation; nil if there is none
	// time after which a question may start another search, even if module or err is set
	retry time.Time
	// last interval from a search to its retry, for doubling; 0: begin with the minimum
	pace  time.Duration
	names []string // the names used for the module in questions; at most maxNames
	// highest level that was reported to Options.Came; Came is called again only for a higher level
	told level
	// the warmer's questions that wait for the end of task; at most maxParked
	parked []errand

	history
	attempts []buildid.Attempt // made by the last search
	heap     int64             // bytes of e and module counted in memory.heap
	open     openFiles         // files of module counted in memory.mapped and memory.byFD
}

// A state describes how an entry can answer. Its transitions:
//
//	unsought ──search──► answering, missing, setAside
//	suspended ─search──► answering, missing, setAside, unsought
//	answering ──budget──► suspended, or unsought during a search; ──broken──► setAside
//	answering ──better file──► answering
//	missing, setAside ──search after retry──► answering, missing, setAside; ──new name──► unsought
//	unsought, suspended, missing, setAside ──too many entries, budget──► forgotten
type state uint8

const (
	unsought state = iota // no file yet: a question starts a search and waits for the search
	// like unsought, but a good file was closed to save memory. Opening it again takes
	// milliseconds, so a question waits up to reopenWait even if its context ends
	suspended
	answering // module answers
	missing   // err is a *NotFoundError, returned until a search finds a file
	setAside  // err is a *FaultError, returned until a search finds a file
	forgotten // the cache has dropped the entry: ask the cache for a new entry
)

// A task is a goroutine's search or inflation for an entry. It is immutable; entry.task is nil
// again after its end.
type task struct {
	purpose purpose
	// for a search, closed once all local finders have answered, at the latest with done; for an
	// inflation, the same channel as done
	local chan struct{}
	done  chan struct{} // closed when the task has ended
}

// A purpose is the reason for a task.
type purpose uint8

const (
	// search for a module's first file; the module may answer from it before the search ends
	firstFile purpose = iota
	// search for a file with debug information while the current file, which has none, answers
	betterFile
	inflation // inflate the debug sections of module
)

// isProvisional reports whether a question should wait for the end of e's task, even if e already
// has a file: a search for the first file, or an inflation, may soon give a better answer. It
// returns false during a search for a better file. e.mu is held.
func (e *entry) isProvisional() bool { return e.task != nil && e.task.purpose != betterFile }

// unpacking reports whether the sections of e's module are being inflated; e.mu is held.
func (e *entry) unpacking() bool { return e.task != nil && e.task.purpose == inflation }

// has makes m the file of e, which had no file; e.mu is held.
func (e *entry) has(m *module) { e.state, e.module, e.err = answering, m, nil }

// A level ranks the best source of answers that a module currently has.
type level uint8

const (
	noAnswers level = iota
	byDynamicSymbols
	bySymbols
	byPacked // debug information that must be inflated first; symbols answer meanwhile
	byDebugInfo
)

func (m *module) level() level {
	switch {
	case m.dw != nil && (!m.packed || m.index != nil):
		return byDebugInfo
	case m.dw != nil:
		return byPacked
	case m.holds >= SymbolTable:
		return bySymbols
	case m.holds == DynamicSymbols:
		return byDynamicSymbols
	}
	return noAnswers
}

// came reports whether Options.Came must be called: e's module has a higher level than any earlier
// file of e, and e has a build ID. It returns true at most once for each level. e.mu is held.
func (e *entry) came() bool {
	if e.module == nil || e.module.level() <= e.told {
		return false
	}
	e.told = e.module.level()
	return !e.key.id.IsZero()
}

// tell calls Options.Came if came is set; e.mu is not held.
func (o *Options) tell(e *entry, came bool) {
	if came && o.Came != nil {
		o.Came(e.key.id)
	}
}

// lacks records that e has no file: its state is s, which is missing or setAside, and err is the
// reason. e.mu is held.
func (e *entry) lacks(s state, err error) { e.state, e.err = s, err }

// endTask ends e's task and queues the questions that waited for it; e.mu is held.
func (e *entry) endTask(w *warmer) {
	// questions wait no longer than their context for the next search, since this one did not open
	// the file again
	if e.state == suspended {
		e.state = unsought
	}
	close(e.task.done)
	e.task = nil
	w.unpark(e)
}

// pending returns ErrPending if the answer of e's module may be better soon; e.mu is held.
func (e *entry) pending() error {
	if e.isProvisional() || e.awaitsUnpacking() {
		return ErrPending
	}
	return nil
}

// wants adds name, clipped, to the names of the module. It returns false if the module already has
// this name, or maxNames names. e.mu is held.
func (e *entry) wants(name string) bool {
	short := name[:min(len(name), maxModuleName)]
	if len(e.names) == maxNames || slices.Contains(e.names, short) {
		return false
	}
	e.names = append(e.names, clipName(name))
	return true
}

// name returns the first name for the module in a question, without its state; e.mu is held.
func (e *entry) name() string {
	name := e.key.name
	if len(e.names) > 0 {
		name = e.names[0]
	}
	name, _, _ = strings.Cut(name, StateMark)
	return name
}

// due reports whether a question may start another search, despite an error or a file without debug
// information; e.mu is held.
func (e *entry) due() bool { return time.Now().After(e.retry) }

// better schedules the next search for a file with debug information; e.mu is held.
func (e *entry) better(now time.Time) {
	e.pace = min(max(2*e.pace, betterMin), betterMax)
	e.retry = now.Add(e.pace)
}

// again schedules the next search for a missing file: soon, since the user may add the file. The
// interval doubles while a finder is out of order: it fails with an error other than a plain miss.
// e.mu is held.
func (e *entry) again(outOfOrder bool) {
	if outOfOrder {
		e.pace = min(max(2*e.pace, retryMiss), betterMax)
	} else {
		e.pace = retryMiss
	}
	e.retry = time.Now().Add(e.pace)
}
