package symbolize

import (
	"errors"
	"sync/atomic"
	"time"
)

// A history is what an entry remembers of the files that it had, after they are closed too.
type history struct {
	strikes   int    // times that a file broke its reader
	broken    broken // the file whose debug information is left alone
	fault     string // the last thing wrong with a file that is or was in use; empty: none
	notified  string // path of the file whose fault Options.Notify got last
	unindexed bool   // no index could be made
	owes      int64  // steps that lookups took, less answerSteps for each
	crowded   int64  // bytes that were inflated again, less answerBytes for each answer
	// for which debug information was left alone for want of memory; doubles; 0: it was not
	denied  time.Duration
	evicted atomic.Int32 // times that inflated sections went to make room for others
}

// A broken is a file whose debug information is left alone until a time.
type broken struct {
	path  string
	fault error
	until time.Time
}

// applies reports whether the debug information of the file at path is left alone.
func (b *broken) applies(path string) bool { return path == b.path && time.Now().Before(b.until) }

// strike counts a break and returns how long the file is left alone.
func (h *history) strike() time.Duration {
	h.strikes++
	if h.strikes < maxStrikes {
		return retryMiss
	}
	const most = 8 // asideMin doubled as often exceeds asideMax
	return min(asideMin<<min(h.strikes-maxStrikes, most), asideMax)
}

// notePanic notes err in what Reports have, if a panic made the index of the file at path
// impossible: the file answers without one.
func (h *history) notePanic(path string, err error) {
	if errors.Is(err, errPanic) {
		h.fault = path + ": index: " + err.Error()
	}
}

// notify reports what is wrong with e's file to Options.Notify, once for each file; e.mu is held.
func (s *Symbolizer) notify(e *entry) {
	m := e.module
	if s.o.Notify == nil || m == nil || m.fault == nil || e.notified == m.path {
		return
	}
	e.notified = m.path
	s.o.Notify(m.path + ": " + m.fault.Error())
}
