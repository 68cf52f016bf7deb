package report

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/symbolize"
)

// atHand bounds the wait of a line for a file on this machine, after its block has used up the
// common wait. Finding a file takes some milliseconds.
const atHand = 100 * time.Millisecond

// maxAwaited bounds the build IDs in Patience.files: about 8 MiB.
const maxAwaited = 65536

// Patience tracks how long one input may still wait for debug files. The time of a build ID starts
// with the first line that names it, so missing files share one wait.
//
// After a wait without success, nothing waits for servers until an awaited file is found or known
// not to exist. So a server that hangs delays an input once, not once for each module. Waits for
// files on this machine continue until such a wait also has no success.
//
// The zero value never waits. A Patience is not safe for concurrent use.
type Patience struct {
	Symbolizer *symbolize.Symbolizer
	// Local and Servers are the longest waits for one build ID, from the first line that names it.
	// Local covers the search on this machine and the inflation of the file. Servers covers the
	// whole search.
	Local, Servers time.Duration
	// PerMinute bounds the sum of the waits in a minute, for all build IDs. 0 means no bound. With
	// a bound, the lines of a Block share their waits: see Block.
	PerMinute time.Duration
	Context   context.Context // ends all waiting; nil never does
	Until     time.Time       // waits end at this time; zero: no bound

	files  map[buildid.ID]*Awaited
	vain   bool          // the last wait ended without an answer
	stuck  bool          // the last wait for a search on this machine ended without an answer
	pauses []pause       // delays that ended in the last minute
	block  time.Duration // time waited in the current block
	blocks bool          // Block was called, and the block has not ended
}

// Awaited is a debug file that an input has named and may wait for.
type Awaited struct {
	since   time.Time // time of the first line that named the file
	pending bool      // the search was not finished at the last lookup
}

// A pause is a delay of the input, or several delays that began within a second.
type pause struct {
	begin, end time.Time
	len        time.Duration // sum of the delays, without the time between them
}

// Name returns the Awaited of a build ID that a line names at time now. A module without an ID is
// searched for by its name, on this machine. Each call for such a module returns a new Awaited,
// which the caller keeps.
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

// Settle records that the debug file is found, or known not to exist.
func (p *Patience) Settle(a *Awaited) {
	if a.pending {
		a.pending, p.vain, p.stuck = false, false, false
	}
}

// Block begins a new block: lines that arrived together. With PerMinute, the lines together wait
// for at most the longer of Local and Servers. After that, each line waits at most atHand at a time
// for files on this machine.
func (p *Patience) Block() { p.blocks, p.block = true, 0 }

// endBlock ends the block. Lines up to the next block have no common wait.
func (p *Patience) endBlock() { p.blocks, p.block = false, 0 }

// left returns how long a line may still wait for the debug file a; not positive if the time is
// over. wait is the whole time for one build ID: Local or Servers.
func (p *Patience) left(wait time.Duration, a *Awaited, now time.Time) time.Duration {
	if p.stuck {
		return 0
	}
	left := wait - now.Sub(a.since)
	if p.PerMinute > 0 {
		left = min(left, p.PerMinute-p.spent(now))
		if p.blocks {
			left = min(left, max(wait-p.block, atHand))
		}
	}
	return left
}

// spent returns the delays of the input in the last minute, and drops older pauses.
func (p *Patience) spent(now time.Time) (sum time.Duration) {
	p.pauses = slices.DeleteFunc(p.pauses, func(w pause) bool { return now.Sub(w.end) > time.Minute })
	for _, w := range p.pauses {
		sum += w.len
	}
	return sum
}

// addPause adds a delay of the input. Delays that begin within one second are joined, since there
// may be thousands. spent includes all of them until a minute after the last one.
func (p *Patience) addPause(begin time.Time, d time.Duration) {
	n := len(p.pauses)
	if n == 0 || begin.Sub(p.pauses[n-1].begin) >= time.Second {
		p.pauses = append(p.pauses, pause{begin: begin})
		n++
	}
	last := &p.pauses[n-1]
	last.end = begin.Add(d)
	last.len += d
}

// Await calls the function ask if a line may still wait for the debug file a. ask gets a context
// that ends with this time. l is a location in the file. If the error of ask wraps
// [symbolize.ErrPending], the wait had no success.
func (p *Patience) Await(a *Awaited, l symbolize.Location, ask func(context.Context) error) {
	a.pending = true
	now := time.Now()
	servers := p.left(p.Servers, a, now)
	left := max(p.left(p.Local, a, now), servers)
	if !p.Until.IsZero() {
		left = min(left, p.Until.Sub(now))
	}
	if left <= 0 {
		return
	}
	parent := p.Context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, left)
	defer cancel()
	enough := p.blocks && p.PerMinute > 0 && max(p.Local, p.Servers)-p.block <= atHand
	if p.vain || enough {
		servers = 0
	}
	var err error
	if servers < left {
		err = p.awaitLocal(ctx, now.Add(servers), l, ask)
		p.stuck = ctx.Err() != nil && !enough
	} else {
		err = ask(ctx)
	}
	a.pending = errors.Is(err, symbolize.ErrPending)
	p.vain = a.pending
	waited := time.Since(now)
	p.block += waited
	if p.PerMinute > 0 {
		p.addPause(now, waited)
	}
}

// An awaiter waits until the search for a file has ended everywhere except on servers.
type awaiter interface {
	AwaitLocal(ctx context.Context, l symbolize.Location)
}

// awaitLocal waits until the search on this machine for the file of l has ended, and calls the
// function ask. If the answer is pending, awaitLocal waits until a file found there has been
// inflated, and calls ask once more. Both waits end with ctx. ask may wait for servers until the
// deadline in until, which may be past.
func (p *Patience) awaitLocal(ctx context.Context, until time.Time, l symbolize.Location, ask func(context.Context) error) (err error) {
	short, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for range 2 {
		access.Symbolizer(p.Symbolizer).(awaiter).AwaitLocal(ctx, l)
		if err = ask(short); !errors.Is(err, symbolize.ErrPending) || ctx.Err() != nil {
			return err
		}
	}
	return err
}
