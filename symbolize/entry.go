package symbolize

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// An entry is what a Symbolizer knows of one module: its file, or why there is none. At most one
// goroutine at a time has a task for it.
type entry struct {
	key  key
	used atomic.Uint64 // cache.clock at the last question

	index atomic.Pointer[indexed] // module's, for questions that take no lock; nil: none
	crew  atomic.Pointer[crew]    // likewise

	mu     sync.Mutex // held while the module answers; guards what follows
	state  state
	module *module // in state answering; else nil
	err    error   // in states missing and setAside; else nil
	task   *task   // of the goroutine that looks for a file or inflates module; nil: none
	// after which a question may start a search although there is module or err
	retry time.Time
	pace  time.Duration // from the last search to retry, if that doubles; else 0
	names []string      // names that the module was asked for under; at most maxNames
	// most that a file given to Options.Came could answer; 0: none was given
	told level
	// questions of the warmer that wait for the end of task; at most maxParked
	parked []errand

	history
	attempts []buildid.Attempt // of the last search
	heap     int64             // bytes of e and module that are in memory.heap
	open     openFiles         // of module that are in memory.mapped and memory.byFD
}

// A state is what an entry has to answer with:
//
//	unsought ──search──► answering, missing, setAside
//	suspended ─search──► answering, missing, setAside, unsought
//	answering ──budget──► suspended, or unsought during a search; ──broken──► setAside
//	answering ──better file──► answering
//	missing, setAside ──search after retry──► answering, missing, setAside; ──new name──► unsought
//	unsought, suspended, missing, setAside ──too many entries, budget──► forgotten
type state uint8

const (
	unsought state = iota // no file yet: a question starts a search and waits for it
	// as unsought, but a good file was closed to save memory: opening it again takes milliseconds,
	// so that a question waits for up to reopenWait, even if its context ends
	suspended
	answering // module answers
	missing   // err is a *NotFoundError: the answer until a search finds a file
	setAside  // err is a *FaultError: likewise
	forgotten // the cache has dropped the entry: ask it again
)

// A task is what a goroutine does for an entry. It does not change once it is made; entry.task is
// nil again when it has ended.
type task struct {
	purpose purpose
	local   chan struct{} // closed when only servers are left to be asked, at the latest with done; of an inflation, done itself
	done    chan struct{} // closed when the task has ended
}

// A purpose is the purpose of a task.
type purpose uint8

const (
	// search for a file: the module has none, or one that was found during this search
	firstFile purpose = iota
	// search for a file with debug information: module, which has none, answers meanwhile
	betterFile
	inflation // inflate the debug sections of module
)

// isProvisional reports whether a question should wait for the end of e's task, although module
// may be open: the answer may be better then. e.mu is held.
func (e *entry) isProvisional() bool { return e.task != nil && e.task.purpose != betterFile }

// unpacking reports whether the sections of e's module are being inflated; e.mu is held.
func (e *entry) unpacking() bool { return e.task != nil && e.task.purpose == inflation }

// has makes m the file of e, which has none; e.mu is held.
func (e *entry) has(m *module) { e.state, e.module, e.err = answering, m, nil }

// A level is the best source of answers that a module has at hand.
type level uint8

const (
	noAnswers level = iota
	byDynamicSymbols
	bySymbols
	byPacked // debug information that must be inflated first; symbols meanwhile
	byDebugInfo
)

// level returns the best source of answers that m has at hand.
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

// came reports whether e's module can answer more than all files before it. Options.Came gets each such
// file once; e.mu is held.
func (e *entry) came() bool {
	if e.module == nil || e.module.level() <= e.told {
		return false
	}
	e.told = e.module.level()
	return !e.key.id.IsZero()
}

// tell calls Options.Came if e's file came; e.mu is not held.
func (o *Options) tell(e *entry, came bool) {
	if came && o.Came != nil {
		o.Came(e.key.id)
	}
}

// lacks notes why e, which has no file, has none: s is missing or setAside. e.mu is held.
func (e *entry) lacks(s state, err error) { e.state, e.err = s, err }

// endTask ends e's task, and has the questions asked that wait for it; e.mu is held.
func (e *entry) endTask(w *warmer) {
	// a search has ended without opening the file again: the next one gets the usual patience
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

// wants remembers name and reports whether it is a new one; e.mu is held.
func (e *entry) wants(name string) bool {
	short := name[:min(len(name), maxModuleName)]
	if len(e.names) == maxNames || slices.Contains(e.names, short) {
		return false
	}
	e.names = append(e.names, clipName(name))
	return true
}

// name returns the first name that the module was asked for under, without a state; e.mu is held.
func (e *entry) name() string {
	name := e.key.name
	if len(e.names) > 0 {
		name = e.names[0]
	}
	name, _, _ = strings.Cut(name, StateMark)
	return name
}

// due reports whether a question may start a search although there is an error, or a file
// without debug information; e.mu is held.
func (e *entry) due() bool { return time.Now().After(e.retry) }

// better sets the time of the next search for a file better than e's module, which has no debug
// information; e.mu is held.
func (e *entry) better(now time.Time) {
	e.pace = min(max(2*e.pace, betterMin), betterMax)
	e.retry = now.Add(e.pace)
}

// again sets the time of the next search for a file that was not found: soon, since somebody may
// add the file, but the time doubles while a finder is out of order, that is, fails otherwise than
// by a plain miss. e.mu is held.
func (e *entry) again(outOfOrder bool) {
	if outOfOrder {
		e.pace = min(max(2*e.pace, retryMiss), betterMax)
	} else {
		e.pace = retryMiss
	}
	e.retry = time.Now().Add(e.pace)
}
