package symbolize

import (
	"errors"
	"sync/atomic"
	"time"
)

// A history holds the faults, debts and counts of an entry's files. It is kept when the files are
// closed.
type history struct {
	strikes   int    // number of strikes: a file broke its reader, or cost too much
	broken    broken // the file whose debug information is set aside
	fault     string // the last fault of a file that is or was in use; empty if none
	notified  string // path of the file last reported to Options.Notify
	unindexed bool   // an index could not be made
	owes      int64  // steps that lookups took, less answerSteps for each
	crowded   int64  // bytes that were inflated repeatedly, less answerBytes for each answer
	// how long debug information was last set aside for lack of memory; doubles; 0 if never
	denied time.Duration
	// number of times that inflated sections were released to make room for other files
	evicted atomic.Int32
}

// A broken names a file whose debug information is not used before the time until.
type broken struct {
	path  string
	fault error
	until time.Time
}

// applies reports whether the debug information of the file at path is set aside.
func (b *broken) applies(path string) bool { return path == b.path && time.Now().Before(b.until) }

// strike counts a strike and returns how long the file is set aside.
func (h *history) strike() time.Duration {
	h.strikes++
	if h.strikes < maxStrikes {
		return retryMiss
	}
	const most = 8 // asideMin doubled 8 times exceeds asideMax
	return min(asideMin<<min(h.strikes-maxStrikes, most), asideMax)
}

// notePanic records err for Reports if it is a panic that kept the file at path from being indexed.
// The file answers without an index.
func (h *history) notePanic(path string, err error) {
	if errors.Is(err, errPanic) {
		h.fault = path + ": index: " + err.Error()
	}
}

// notify passes the fault of e's file to Options.Notify, unless that file was the last one passed
// for e; e.mu is held.
func (s *Symbolizer) notify(e *entry) {
	m := e.module
	if s.o.Notify == nil || m == nil || m.fault == nil || e.notified == m.path {
		return
	}
	e.notified = m.path
	s.o.Notify(m.path + ": " + m.fault.Error())
}
