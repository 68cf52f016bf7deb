package symbolize

import (
	"context"
	"time"
)

// An admission requests memory to inflate one file. One goroutine uses it, which holds no entry's
// lock. The goroutine holds a slot of memory.running, except while it waits for memory.
type admission struct {
	c   *cache
	ctx context.Context // done when the Symbolizer is closed
	e   *entry          // the file's entry
	end time.Time       // deadline of all waits for this file; zero before the first wait
}

func (c *cache) admit(ctx context.Context, e *entry) *admission {
	return &admission{c: c, ctx: ctx, e: e}
}

// spare requests n bytes for sections, which could also be inflated into a spill file. It does not
// wait. It releases memory of other files only if memory.turn is free and a's file was never
// evicted. Otherwise, files that do not fit together would evict each other again and again.
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

// await requests n bytes that cannot be in a spill file, and waits for them. All waits for one file
// take at most admitWait together, including the waits for memory.turn. While await waits, other
// files may be inflated.
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
	// a goroutine that waits holds no slot: only inflating needs one
	defer func() { m.running <- struct{}{} }()
	end := time.NewTimer(time.Until(a.end))
	defer end.Stop()
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-end.C:
		return a.now(n) // n may fit although the requests before it in the queue do not
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

// now requests n bytes without waiting. If necessary, it releases memory of other files.
func (a *admission) now(n int64) error { return a.c.take(n, &a.c.memory.sections, a.e) }
