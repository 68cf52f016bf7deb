package symbolize

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A question is one lookup in the file of an entry. It holds the entry's lock from
// [Symbolizer.acquire] until end.
type question struct {
	s     *Symbolizer
	e     *entry  // held locked
	m     *module // e's module, open when the question begins
	began time.Time
	// the question is about the file, not about an address
	examines bool
	struck   error // fault of this lookup that counts as a strike; nil if none
}

// acquire returns a question about the file of l, and waits for that file until ctx is done. If the
// file is missing or set aside, it returns the error at once.
func (s *Symbolizer) acquire(ctx context.Context, l Location) (q question, err error) {
	for {
		e, err := s.cache.entry(l.ID, l.Name)
		if err != nil {
			return q, err
		}
		e.mu.Lock()
		if e.state == answering && !(e.isProvisional() && ctx.Err() == nil && s.ctx.Err() == nil) {
			q.begin(s, e)
			return q, nil
		}
		t, err := s.start(e, l.Name)
		reopens := e.state == suspended
		e.mu.Unlock()
		switch {
		case err == errBusy:
			if err = s.room(ctx); err != nil {
				s.cache.relieve()
			}
		case err == nil && t != nil:
			err = s.await(ctx, e, t, reopens)
		}
		if err != nil {
			return q, err
		}
	}
}

// begin makes q a question about the open file of e, which is locked. It starts the search for a
// better file if that search is due.
func (q *question) begin(s *Symbolizer, e *entry) {
	q.s, q.e, q.m, q.began = s, e, e.module, time.Now()
	if e.module.dw == nil && e.task == nil && q.began.After(e.retry) {
		s.find(e)
	}
	e.used.Store(s.cache.clock.Add(1))
}

// start returns the task for which a question must wait, since e has no file or a provisional one.
// If e has no task, start begins a search. If e has an error, start returns that error, and begins
// another search if it is due. If e is forgotten, start returns nil without an error. name is the
// module's name in the question. e.mu is held.
func (s *Symbolizer) start(e *entry, name string) (*task, error) {
	if e.state == forgotten {
		return nil, nil
	}
	e.used.Store(s.cache.clock.Add(1))
	if e.task == nil && e.wants(name) && e.err != nil {
		// a new name may be the path of a file, which the earlier names were not: search again
		e.state, e.err = unsought, nil
	}
	if err := e.err; err != nil {
		if e.task == nil && e.due() {
			s.find(e)
		}
		return nil, err
	}
	if e.task == nil {
		if err := s.find(e); err != nil {
			return nil, err
		}
	}
	return e.task, nil
}

// await waits for the end of t, a task of e. If ctx is done first, it returns ErrPending, unless e
// has a file by then, even a provisional one. If reopens is set, it waits for t up to reopenWait
// longer. It returns nil if the caller should look at e again.
func (s *Symbolizer) await(ctx context.Context, e *entry, t *task, reopens bool) error {
	select {
	case <-t.done:
		return nil
	default:
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		if e.hasFile() || reopens && s.reopened(e, t) {
			return nil
		}
		return ErrPending
	case <-s.ctx.Done():
		return ErrClosed
	}
}

func (e *entry) hasFile() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == answering
}

// reopened waits up to reopenWait until t has reopened e's file, which was closed to save memory,
// and reports whether the task has ended. It ignores the caller's context, whose deadline is meant
// for finders and servers: reopening takes milliseconds.
func (s *Symbolizer) reopened(e *entry, t *task) bool {
	limit := time.NewTimer(reopenWait)
	defer limit.Stop()
	select {
	case <-t.done:
		return true
	case <-s.ctx.Done():
	case <-limit.C:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == suspended {
		e.state = unsought // the next questions wait only as long as their context allows
	}
	return false
}

// until returns the expiry time of an answer from symbols. The answer expires at once while a
// better file is searched for, or while the file's debug information must still be inflated.
func (q *question) until() time.Time {
	if q.e.task != nil || q.e.awaitsUnpacking() {
		return q.began
	}
	return q.e.retry
}

// judge counts a strike against the entry if this lookup had a fault that counts as one. It sets
// the debug information of q's file aside after a panic, after maxStrikes strikes, or if lookups
// cost too much. Closing the file does not reset the count.
func (q *question) judge() {
	q.charge()
	err, e := q.struck, q.e
	if err == nil {
		return
	}
	if errors.Is(err, errDear) {
		e.strikes, e.owes = max(e.strikes, maxStrikes-1), 0
	}
	aside := e.strike()
	q.s.cache.counts.faults.Add(1)
	// a reader that panicked may be in any state
	if e.strikes < maxStrikes && !errors.Is(err, errPanic) {
		return
	}
	q.m.drop(fmt.Errorf("%w; answering from symbols only", err))
	e.broken = broken{q.m.path, q.m.fault, q.began.Add(aside)}
	e.pace = 0
	e.better(q.began)
	q.s.notify(e)
}

// charge adds the steps of the lookup beyond answerSteps to the entry's debt. A file that owes too
// much, or whose lookup used up its bound, gets a strike.
func (q *question) charge() {
	m, e := q.m, q.e
	if m.dw == nil {
		return
	}
	steps, exhausted := m.dw.Spent()
	e.owes = max(0, e.owes+steps-answerSteps)
	if m.join(e); e.owes > q.s.cache.memory.maxOwed/crewShare {
		m.crew.retire()
	}
	e.crowded = max(0, e.crowded-answerBytes)
	switch {
	case e.owes > q.s.cache.memory.maxOwed:
		q.struck = errDear
	case exhausted && q.struck == nil && m.fault != nil:
		q.struck = m.fault
	}
}

// complain records err as the fault of the debug information, unless an earlier fault is recorded.
// If err is a panic of the reader, the lookup also counts as a strike.
func (q *question) complain(err error) {
	if q.m.fault == nil {
		q.m.fault = err
	}
	q.m.crew.retire()
	if errors.Is(err, errPanic) {
		q.struck = err
	}
}

// end ends q and unlocks its entry. If err is not nil, the whole file is unusable: end closes it
// and returns a *FaultError.
func (q *question) end(err error) error {
	s, e := q.s, q.e
	s.cache.repay(e)
	if err != nil {
		err = q.broke(err)
	}
	if e.module == nil || e.module.due(time.Since(q.began), !q.examines) {
		e.gather(s)
		s.cache.account(e)
		s.index(e)
	}
	e.mu.Unlock()
	s.cache.relieve()
	return err
}

// broke closes q's file, whose reader failed with err, and sets it aside.
func (q *question) broke(err error) error {
	e := q.e
	fault := &FaultError{Path: q.m.path, Err: err}
	e.fault = fault.Error()
	e.retry = time.Now().Add(e.strike())
	q.s.cache.counts.faults.Add(1)
	q.s.cache.shut(e)
	e.lacks(setAside, fault)
	return fault
}
