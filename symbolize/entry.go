package symbolize

import (
	"context"
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
// In each but open, a goroutine may be finding.
type entry struct {
	key  key
	used atomic.Uint64 // Symbolizer.clock at the last question

	mu      sync.Mutex // held while the module answers
	module  *module
	err     error
	retry   time.Time // when err may be looked into again
	names   []string  // under which the module was asked for
	finding bool
	done    chan struct{} // closed when finding ends
	gone    bool          // no longer in the Symbolizer's map: ask there again

	heap     int64 // bytes of module that are in the Symbolizer's sum
	strikes  int   // times that the file broke its reader
	attempts []buildid.Attempt
	fault    string // the last thing that was wrong with a file that is or was in use
}

// entry returns the entry of a module and makes it if need be.
func (s *Symbolizer) entry(id buildid.ID, name string) (*entry, error) {
	k := key{id: id}
	if id.IsZero() {
		k.name = name
	}
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
	return e, nil
}

// forget drops the older half of the entries that hold no file; s.mu is held.
// An entry that is in use at the moment stays.
func (s *Symbolizer) forget() {
	now := s.clock.Load()
	for _, young := range []uint64{now / 2, now + 1} { // by age first; all of them if that made no room
		for k, e := range s.entries {
			if e.used.Load() >= young || !e.mu.TryLock() {
				continue
			}
			if e.module == nil && !e.finding {
				e.gone = true
				delete(s.entries, k)
			}
			e.mu.Unlock()
		}
		if len(s.entries) < maxEntries {
			return
		}
	}
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
		if e.module != nil {
			e.module.began = time.Now()
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
		if !e.finding {
			s.find(e)
		}
		done := e.done
		e.mu.Unlock()

		select {
		case <-done:
			continue
		default:
		}
		select {
		case <-done:
		case <-ctx.Done():
			return nil, ErrPending
		case <-s.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// release ends a question to e's module, which said err, and gives e back.
func (s *Symbolizer) release(e *entry, err error) error {
	if err != nil {
		err = s.broke(e, err)
	}
	if m := e.module; m == nil || m.due() {
		s.account(e)
	}
	e.mu.Unlock()
	if s.over() {
		s.trim()
	}
	return err
}

// wants remembers name and reports whether it is a new one; e.mu is held.
func (e *entry) wants(name string) bool {
	if len(e.names) == maxNames || slices.Contains(e.names, name) {
		return false
	}
	e.names = append(e.names, name)
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

// due reports whether err may be looked into again; e.mu is held.
func (e *entry) due() bool { return time.Now().After(e.retry) }

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

// shut closes e's file, if it is open; e.mu is held. The next question opens
// it again unless err says otherwise.
func (s *Symbolizer) shut(e *entry) error {
	if e.module == nil {
		return nil
	}
	s.memory.closed(e.module)
	err := e.module.close()
	e.module = nil
	s.account(e)
	return err
}
