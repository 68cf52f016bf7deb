package daemon

import (
	"errors"
	"io"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/input"
)

// The methods of this file manage a session's context. The caller holds s.mu, except for methods
// that lock s.mu, as their comments state.

// adopt moves the session to its pipeline's current stage after a reload.
func (s *session) adopt() {
	to := s.p.stage.Load()
	if s.stage == to || s.ended || !s.stage.fits(to, s.stage.format) {
		return // the stream keeps its old options until its end
	}
	if s.in != nil && !s.park() {
		return // the format has no context: the old options stay
	}
	s.p.mu.Lock() // a reload must not close the stage between Load and join
	to = s.p.stage.Load()
	to.join()
	s.p.mu.Unlock()
	s.stage.leave()
	s.stage = to
}

// An interrupter can interrupt a waiting Write, which then returns errReplaced.
type interrupter interface{ interrupt() }

// restage adopts the pipeline's stage. A busy session adopts it later. A session that waits for a
// replaced peer is interrupted. restage locks s.mu.
func (s *session) restage() {
	if w, ok := s.own.(interrupter); ok && s.p.stage.Load().out != nil {
		w.interrupt()
	}
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.adopt()
}

// awaken counts the session's filter. If too many sessions have a filter, it parks another session.
func (s *session) awaken() {
	if other := s.p.house.contexts.wake(s); other != nil && other.mu.TryLock() {
		defer other.mu.Unlock()
		if other.in != nil && !other.ended && other.err == nil {
			other.park()
		}
	}
}

func (s *session) sleep() {
	s.in, s.filter = nil, nil
	s.p.house.contexts.sleep(s)
}

// remember gives a new filter s.past, the context of the peer's earlier stream.
func (s *session) remember() {
	if len(s.past) == 0 {
		return
	}
	if err := s.in.Remember(s.past); err != nil {
		s.p.log.Warn("cannot restore the context of a peer: modules and maps of its earlier stream are lost", "peer", s.peer, "error", err)
	}
	s.past, s.changed = nil, true
}

// note sets s.changed if the context has changed since the last call.
func (s *session) note() {
	if s.in == nil || !s.in.ProcessesChanged() {
		return
	}
	s.changed = true
	if s.memory != nil {
		s.memory.changed.Store(true)
	}
}

// manyProcesses is a number of processes. A session with a memory and at least that many processes
// computes the size of its context only once per silence. Other sessions compute it at each change.
const manyProcesses = 64

// weigh enforces the limits on contexts: it drops the context of a session that exceeds them, or
// that contexts.enter refuses.
func (s *session) weigh() error {
	if s.in == nil || s.in.Undecided() {
		return nil
	}
	changed := s.changed
	s.note()
	c := s.p.house.contexts
	if !c.enter(s) {
		if n, _ := weigh(s.filter); n > 0 {
			s.p.house.measures.evicted[evictedLimit].Add(1)
		}
		return s.drop()
	}
	if now := time.Now(); s.changed && (!changed || s.memory == nil || s.processes < manyProcesses || now.Sub(s.weighed) > silence) {
		s.weighed = now
		n, bytes := weigh(s.filter)
		if !c.set(s, max(1, n), bytes) {
			s.p.house.measures.evicted[evictedLimit].Add(1)
			return s.drop()
		}
		if s.memory == nil {
			s.changed = false
		}
	}
	return nil
}

// weighed is the interface of a Filter's internal methods for enforcing limits: see
// [access.Filter].
type weighed interface {
	Weigh() (processes int, bytes int64)
	SetLimits(filter.Limits)
}

func weigh(f *filter.Filter) (processes int, bytes int64) { return access.Filter(f).(weighed).Weigh() }

// drop prints the held lines, and drops the context.
func (s *session) drop() error {
	err := s.in.Close()
	s.count()
	s.sleep()
	s.p.house.contexts.set(s, 1, 0)
	s.changed = true
	return err
}

// keepSnapshot sets s.snapshot to the session's context, if it has changed since the last snapshot.
// The context is empty without a module or a map.
func (s *session) keepSnapshot() {
	if s.memory == nil || !s.changed || s.in != nil && s.in.Undecided() {
		return
	}
	s.changed = false
	var context []byte
	if s.in != nil {
		if n, _ := weigh(s.filter); n > 0 {
			context, _ = s.in.AppendProcesses(nil)
		}
	}
	s.snapshot.Store(&context)
}

// saved returns the context for memory, and the time of its last use. If the session is busy, it
// returns the last snapshot and no time. saved locks s.mu.
func (s *session) saved() (context []byte, used time.Time) {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		if used = s.used; len(s.past) > 0 {
			return s.past, used
		}
		if s.in == nil && s.parked != nil {
			return s.revived(), used
		}
		s.keepSnapshot()
	} else {
		s.memory.changed.Store(true) // the next save includes the context
	}
	if c := s.snapshot.Load(); c != nil {
		context = *c
	}
	return context, used
}

// revived returns the context of a parked session without its held lines, as the memory saves it.
// It returns nil if the context has no process.
func (s *session) revived() []byte {
	o := filter.Options{ProcessKey: s.stage.options.ProcessKey, Limits: s.stage.options.Limits}
	f := filter.New(io.Discard, o)
	log := func() io.WriteCloser { return f }
	w := input.New(s.stage.format, input.Translators{
		Markup: log,
		Container: func(format input.Format) io.WriteCloser {
			e := input.NewEnvelope(format, o, io.Discard, s.stage.conf.Input.JSONFields...)
			f = e.Filter()
			return e
		},
		Valgrind: log, Callgrind: log, RTrace: log,
		Fields: s.stage.conf.Input.JSONFields, Unpacked: true,
	})
	if w.Restore(s.parked) != nil {
		return nil // the session reports the error when it wakes
	}
	if n, _ := weigh(f); n == 0 {
		return nil
	}
	context, _ := w.AppendProcesses(nil)
	return context
}

// depart ends the session. It prints the remaining lines, and returns the context for a later
// stream. depart locks s.mu.
func (s *session) depart() (context []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, s.err
	}
	defer s.finish()
	if s.in == nil && s.parked == nil {
		if s.past != nil {
			return s.past, s.err
		}
		return nil, s.err // unused, or has dropped its context
	}
	s.working()
	defer s.rests()
	s.adopt()
	s.wake()
	err = s.in.Flush()
	s.note()
	s.changed = true
	s.keepSnapshot()
	if c := s.snapshot.Load(); c != nil {
		context = *c
	}
	err = errors.Join(s.err, err, s.in.Close())
	s.count()
	return context, err
}
