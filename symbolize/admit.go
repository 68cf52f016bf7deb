package symbolize

import (
	"context"
	"time"
)

// An admission asks for the memory in which one file is inflated, in a goroutine that holds a slot
// of memory.running and no entry's lock. One goroutine uses it.
type admission struct {
	c   *cache
	ctx context.Context // of the Symbolizer
	e   *entry          // the file's
	end time.Time       // of all waiting for this file; zero until it waits
}

// admit returns an admission for e's file.
func (c *cache) admit(ctx context.Context, e *entry) *admission {
	return &admission{c: c, ctx: ctx, e: e}
}

// spare asks for n bytes for what can go to a file instead. It does not wait, and other files make
// room only if e's never had to for theirs: else files that do not fit together would take turns
// being inflated. Nor do they if another file waits for that room.
func (a *admission) spare(n int64) error {
	m := &a.c.memory
	if m.take(n, &m.sections) {
		return nil
	}
	if n <= m.limit() && a.e.evicted.Load() == 0 {
		select {
		case m.turn <- struct{}{}:
			a.c.makeRoom(n, a.e)
			<-m.turn
		default:
		}
		if m.take(n, &m.sections) {
			return nil
		}
	}
	return m.shortage(n)
}

// await asks for n bytes that must be memory, and waits for them: for one file admitWait in all,
// its turn after those that asked before included. Others may inflate meanwhile.
func (a *admission) await(n int64) error {
	m := &a.c.memory
	if m.take(n, &m.sections) {
		return nil
	}
	if n > m.limit() {
		return m.shortage(n)
	}
	if a.end.IsZero() {
		a.end = time.Now().Add(admitWait)
	}
	<-m.running
	defer func() { m.running <- struct{}{} }() // those that hold the slots inflate: they do not wait
	end := time.NewTimer(time.Until(a.end))
	defer end.Stop()
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-end.C:
		return a.now(n) // may be little, though those before ask for much
	case <-a.ctx.Done():
		return ErrClosed
	}
	again := time.NewTicker(admitAgain)
	defer again.Stop()
	for {
		freed := m.nextFreed()
		err := a.now(n)
		if err == nil {
			return nil
		}
		select {
		case <-freed:
		case <-again.C:
		case <-end.C:
			return err
		case <-a.ctx.Done():
			return ErrClosed
		}
	}
}

// now asks for n bytes, for which other files make room.
func (a *admission) now(n int64) error { return a.c.take(n, &a.c.memory.sections, a.e) }
