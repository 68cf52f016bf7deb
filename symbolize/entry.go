package symbolize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// An entry is what is known of one module's file. It is in one of these
// states:
//
//	not looked for: neither module nor err; also after the budget closed it
//	open:           module
//	missing:        err is a *NotFoundError, until retry
//	set aside:      err is a *FaultError, until retry
//
// In each, a goroutine may be finding; when it is open, only if the module has
// no debug information: the first search goes on behind it (first), or another
// from retry on.
type entry struct {
	key  key
	used atomic.Uint64 // Symbolizer.clock at the last question

	index atomic.Pointer[indexed] // of module; nil: none

	mu      sync.Mutex // held while the module answers
	module  *module
	err     error
	retry   time.Time     // when err, or a better module, may be looked into again
	pace    time.Duration // from the last search to the next, where it doubles
	names   []string      // under which the module was asked for
	finding bool
	first   bool          // finding began without a module: questions wait for its end
	done    chan struct{} // closed when finding ends
	local   chan struct{} // closed when it ends, or only servers are left to be asked
	gone    bool          // no longer in the Symbolizer's map: ask there again
	reopens bool          // module was closed though it is good: questions wait until it is open again

	unpacking bool          // the sections of module are being inflated, which is finding, too
	denied    time.Duration // for which there was no memory for module; it doubles
	evicted   atomic.Int32  // times that inflated sections went to make room for others
	owes      int64         // steps that lookups took, less those that each may take
	crowded   int64         // bytes that were inflated again, less those that answers paid for
	told      string        // the last fault that was notified of

	unindexed bool      // no index could be made
	heap      int64     // bytes of module that are in the Symbolizer's sum
	open      openFiles // of module that are in it
	strikes   int       // times that a file broke its reader
	broken    broken
	attempts  []buildid.Attempt
	fault     string // the last thing that was wrong with a file that is or was in use
}

// broken is a file whose debug information is left alone.
type broken struct {
	path  string
	fault error
	until time.Time
}

// entry returns the entry of a module and makes it if need be.
func (s *Symbolizer) entry(id buildid.ID, name string) (*entry, error) {
	k := keyOf(id, name)
	s.mu.RLock()
	e, closed := s.entries[k], s.closed
	s.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	if e != nil {
		return e, nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if e := s.entries[k]; e != nil {
		return e, nil
	}
	if len(s.entries) >= maxEntries {
		s.forget()
	}
	e = &entry{key: k}
	e.used.Store(s.clock.Load())
	s.entries[k] = e
	s.account(e) // nobody else knows it yet
	return e, nil
}

// forget drops the older half of the entries that hold no file; s.mu is held.
// An entry that is in use at the moment stays.
func (s *Symbolizer) forget() {
	now := s.clock.Load()
	for _, young := range []uint64{now / 2, now + 1} { // by age first; all of them if that made no room
		for _, e := range s.entries {
			if e.used.Load() >= young || !e.mu.TryLock() {
				continue
			}
			if e.module == nil && !e.finding {
				s.remove(e)
			}
			e.mu.Unlock()
		}
		if len(s.entries) < maxEntries {
			return
		}
	}
}

// remove forgets e; s.mu and e.mu are held.
func (s *Symbolizer) remove(e *entry) {
	e.gone = true
	delete(s.entries, e.key)
	s.memory.heap.Add(-e.heap)
	e.heap = 0
}

// all returns the entries of the moment.
func (s *Symbolizer) all() []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	es := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		es = append(es, e)
	}
	return es
}

// acquire returns the entry of l locked and open, or an error. It waits until
// ctx is done; the answer to an entry that is missing or set aside is given at
// once.
func (s *Symbolizer) acquire(ctx context.Context, l Location) (*entry, error) {
	for {
		e, err := s.entry(l.ID, l.Name)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		if m := e.module; m != nil && !(e.first && ctx.Err() == nil && s.ctx.Err() == nil) {
			m.began = time.Now()
			if m.dw == nil && !e.finding && m.began.After(e.retry) {
				s.find(e)
			}
			e.used.Store(s.clock.Add(1))
			return e, nil
		}
		if e.gone {
			e.mu.Unlock()
			continue
		}
		e.used.Store(s.clock.Add(1))
		if !e.finding && e.wants(l.Name) {
			e.err = nil // this name may be a path that the others were not
		}
		if err := e.err; err != nil {
			if !e.finding && e.due() {
				s.find(e)
			}
			e.mu.Unlock()
			return nil, err
		}
		if !e.finding && !s.find(e) { // there is no module: a first search goes on to its end
			e.mu.Unlock()
			if err := s.room(ctx); err != nil {
				s.relieve()
				return nil, err
			}
			continue
		}
		done, reopens := e.done, e.reopens
		e.mu.Unlock()

		select {
		case <-done:
			continue
		default:
		}
		select {
		case <-done:
		case <-ctx.Done():
			if s.provisional(e) || reopens && s.reopened(e, done) {
				continue
			}
			return nil, ErrPending
		case <-s.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// reopened waits until e's file, which was closed to save memory, is open again:
// nobody's patience is meant for that, which takes milliseconds. It reports whether it is.
func (s *Symbolizer) reopened(e *entry, done <-chan struct{}) bool {
	t := time.NewTimer(reopenWait)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-s.ctx.Done():
	case <-t.C:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reopens = false
	return false
}

// provisional reports whether e has a file to answer from while its first
// search goes on.
func (s *Symbolizer) provisional(e *entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.module != nil
}

// pending returns ErrPending if the file of e's module may be better soon;
// e.mu is held.
func (e *entry) pending() error {
	if e.first || e.awaitsUnpacking() {
		return ErrPending
	}
	return nil
}

// release ends a question to e's module, which said err, and gives e back.
func (s *Symbolizer) release(e *entry, err error) error {
	s.repay(e)
	if err != nil {
		err = s.broke(e, err)
	}
	if m := e.module; m == nil || m.due() {
		s.account(e)
		s.index(e)
	}
	e.mu.Unlock()
	s.relieve()
	return err
}

// wants remembers name and reports whether it is a new one; e.mu is held.
func (e *entry) wants(name string) bool {
	short := name[:min(len(name), maxModuleName)]
	if len(e.names) == maxNames || slices.Contains(e.names, short) {
		return false
	}
	e.names = append(e.names, kept(name))
	return true
}

// name returns the first name that the module was asked for under; e.mu is
// held.
func (e *entry) name() string {
	if len(e.names) == 0 {
		return e.key.name
	}
	return e.names[0]
}

// due reports whether err, or a better file, may be looked into again; e.mu is
// held.
func (e *entry) due() bool { return time.Now().After(e.retry) }

// until returns how long the answers of e's module, which has no debug
// information, may be kept; e.mu is held.
func (e *entry) until() time.Time {
	if e.finding {
		return e.module.began
	}
	return e.retry
}

// judge sets aside the debug information of e's module if it broke its reader;
// e.mu is held. A strike counts for the entry: closing the file forgets nothing.
func (s *Symbolizer) judge(e *entry) {
	m := e.module
	e.charge(s.memory.maxOwed)
	if m.struck == nil {
		return
	}
	err := m.struck
	m.struck = nil
	if errors.Is(err, errDear) {
		e.strikes, e.owes = max(e.strikes, maxStrikes-1), 0
	}
	aside := e.strike()
	if e.strikes < maxStrikes && !errors.Is(err, errPanic) { // a reader that panicked is in no good state
		return
	}
	m.drop(fmt.Errorf("%w; answering by symbols only", err))
	e.broken = broken{m.path, m.fault, m.began.Add(aside)}
	e.pace = 0
	e.better(m.began)
	s.notify(e)
}

// charge adds to what e owes the steps of a question, less those that a question may take. A file that owes too much costs more than its answers are
// worth.
func (e *entry) charge(maxOwed int64) {
	m := e.module
	if m.dw == nil {
		return
	}
	steps, exhausted := m.dw.Spent()
	e.owes = max(0, e.owes+steps-answerSteps)
	e.crowded = max(0, e.crowded-answerBytes)
	switch {
	case e.owes > maxOwed:
		m.struck = errDear
	case exhausted && m.struck == nil && m.fault != nil:
		m.struck = m.fault
	}
}

// notify tells of what is wrong with e's file, once; e.mu is held.
func (s *Symbolizer) notify(e *entry) {
	m := e.module
	if s.o.Notify == nil || m == nil || m.fault == nil || e.told == m.path {
		return
	}
	e.told = m.path
	s.o.Notify(m.path + ": " + m.fault.Error())
}

// better sets the time of the next search for a file better than e's module,
// which has no debug information; e.mu is held.
func (e *entry) better(now time.Time) {
	e.pace = min(max(2*e.pace, betterMin), betterMax)
	e.retry = now.Add(e.pace)
}

// again sets the time of the next search for a file that was not found: soon,
// for somebody may add it, but ever less often where a finder is out of order.
// e.mu is held.
func (e *entry) again(outOfOrder bool) {
	if outOfOrder {
		e.pace = min(max(2*e.pace, retryMiss), betterMax)
	} else {
		e.pace = retryMiss
	}
	e.retry = time.Now().Add(e.pace)
}

// broke closes e's module, which broke its reader with err, and sets it aside;
// e.mu is held.
func (s *Symbolizer) broke(e *entry, err error) error {
	fault := &FaultError{Path: e.module.path, Err: err}
	e.fault = fault.Error()
	e.err = fault
	e.retry = time.Now().Add(e.strike())
	s.shut(e)
	return fault
}

// strike counts a break and returns how long the file is left alone; e.mu is
// held.
func (e *entry) strike() time.Duration {
	e.strikes++
	if e.strikes < maxStrikes {
		return retryMiss
	}
	aside := asideMin
	for i := maxStrikes; i < e.strikes && aside < asideMax; i++ {
		aside *= 2
	}
	return min(aside, asideMax)
}

// suspend closes e's file to save memory; e.mu is held. The next question opens
// it again.
func (s *Symbolizer) suspend(e *entry) {
	e.reopens = e.module != nil && !e.first
	s.shut(e)
}

// shut closes e's file, if it is open; e.mu is held. The next question opens
// it again unless err says otherwise.
func (s *Symbolizer) shut(e *entry) error {
	if e.module == nil {
		return nil
	}
	err := e.module.close()
	e.module = nil
	s.account(e)
	return err
}
