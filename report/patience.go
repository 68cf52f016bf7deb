package report

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// atHand is how long a line may wait for a file on this machine after the lines of its block have
// waited long enough: finding one takes some milliseconds.
const atHand = 100 * time.Millisecond

// maxAwaited bounds the build IDs that a Patience remembers: some 8 MiB.
const maxAwaited = 65536

// Patience tracks how long one input may still wait for debug files. The time of a build ID starts
// with the first line that names it, so files that are missing together are waited for together,
// and once.
//
// After a wait in vain nothing waits for servers until one of the awaited files is found or known
// to be nowhere: a server that hangs holds an input up once, however many modules it has. Files on
// this machine are still waited for, until that is in vain too.
//
// The zero value never waits. One goroutine at a time uses a Patience.
type Patience struct {
	Symbolizer *symbolize.Symbolizer
	Wait       time.Duration   // for one build ID, from the first line that names it
	PerMinute  time.Duration   // for all of them; 0 is no bound. With one, the lines of a Block wait no longer than Wait together
	Context    context.Context // ends all waiting; nil never does

	files  map[buildid.ID]*Awaited
	vain   bool          // the last wait ended without an answer
	stuck  bool          // the last wait for a search on this machine did
	pauses []pause       // of the last minute
	block  time.Duration // waited in the current block
	blocks bool          // Block was called
}

// Awaited is a debug file that an input has named.
type Awaited struct {
	since   time.Time // of the first line that names it
	pending bool      // at the last question its file was still being looked for
}

// pause is a time during which the input was held up.
type pause struct {
	end time.Time
	len time.Duration
}

// Name returns the Awaited of a build ID that a line names now. A module without an ID is looked
// for by its name, on this machine; each call for it returns another Awaited, which the caller
// keeps.
func (p *Patience) Name(id buildid.ID, now time.Time) *Awaited {
	if a := p.files[id]; a != nil {
		return a
	}
	if p.files == nil || len(p.files) >= maxAwaited {
		p.files = make(map[buildid.ID]*Awaited)
	}
	a := &Awaited{since: now}
	if !id.IsZero() {
		p.files[id] = a
	}
	return a
}

// Settle notes that the file of a is found, or known to be nowhere.
func (p *Patience) Settle(a *Awaited) {
	if a.pending {
		a.pending, p.vain, p.stuck = false, false, false
	}
}

// Block notes that the lines that follow came together, and after those before: none of them is held
// up by longer than Wait.
func (p *Patience) Block() { p.blocks, p.block = true, 0 }

// left returns how long a line may wait now for the file of a.
func (p *Patience) left(a *Awaited, now time.Time) time.Duration {
	if p.stuck {
		return 0
	}
	left := p.Wait - now.Sub(a.since)
	if p.PerMinute > 0 {
		left = min(left, p.PerMinute-p.spent(now))
		if p.blocks {
			left = min(left, max(p.Wait-p.block, atHand))
		}
	}
	return left
}

// spent returns how long the input was held up in the last minute, and drops older pauses.
func (p *Patience) spent(now time.Time) (sum time.Duration) {
	p.pauses = slices.DeleteFunc(p.pauses, func(w pause) bool { return now.Sub(w.end) > time.Minute })
	for _, w := range p.pauses {
		sum += w.len
	}
	return sum
}

// Await calls ask, if there is time left for the file of a, with a context that ends when there is
// none. l is a location in that file. An error of ask that wraps [symbolize.ErrPending] means that
// the wait was in vain.
func (p *Patience) Await(a *Awaited, l symbolize.Location, ask func(context.Context) error) {
	a.pending = true
	now := time.Now()
	left := p.left(a, now)
	if left <= 0 {
		return
	}
	parent := p.Context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, left)
	defer cancel()
	enough := p.blocks && p.PerMinute > 0 && p.Wait-p.block <= atHand
	if p.vain || enough {
		p.Symbolizer.AwaitLocal(ctx, l)
		p.stuck = ctx.Err() != nil && !enough
		cancel() // servers are no longer waited for
	}
	err := ask(ctx)
	a.pending = errors.Is(err, symbolize.ErrPending)
	p.vain = a.pending
	waited := time.Since(now)
	p.block += waited
	if p.PerMinute > 0 {
		p.pauses = append(p.pauses, pause{time.Now(), waited})
	}
}
