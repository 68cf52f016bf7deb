package filter

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// maxAwaited is how many build IDs a stream remembers to have waited for: some
// 8 MiB.
const maxAwaited = 65536

// patience is what a stream still has of it: how long lines may wait for debug
// files. The time of a build ID runs from the first line that names it, so
// those that are missing together are waited for together, and once.
// When a wait has been in vain, nobody waits for servers until one of the files
// is there, or known to be nowhere: what hangs holds a stream up once. On this
// machine the files of other modules are still waited for, until that is in
// vain, too.
type patience struct {
	files  map[buildid.ID]*awaited
	vain   bool    // the last wait was
	stuck  bool    // the last wait for a search on this machine was
	waited []pause // in the last minute
}

// awaited is a build ID that lines have named.
type awaited struct {
	since   time.Time // first
	pending bool      // its file was still being looked for at the last question
}

// pause is a time in which the stream was held up.
type pause struct {
	end time.Time
	len time.Duration
}

// of returns what is remembered of the ID of a module that a line names.
func (p *patience) of(id buildid.ID, now time.Time) *awaited {
	if a := p.files[id]; a != nil {
		return a
	}
	if p.files == nil || len(p.files) >= maxAwaited {
		p.files = make(map[buildid.ID]*awaited)
	}
	a := &awaited{since: now}
	if !id.IsZero() { // a module without one is looked for by its name, on this machine
		p.files[id] = a
	}
	return a
}

// settled notes that m's file is there, or known to be nowhere.
func (p *patience) settled(m *module) {
	if m.awaited.pending {
		m.awaited.pending, p.vain, p.stuck = false, false, false
	}
}

// left returns how long a line may wait now for the file of m.
func (p *patience) left(o *Options, m *module, now time.Time) time.Duration {
	if p.stuck {
		return 0
	}
	left := o.Wait - now.Sub(m.awaited.since)
	if o.WaitPerMinute > 0 {
		left = min(left, o.WaitPerMinute-p.spent(now))
	}
	return left
}

// spent returns how long the stream was held up in the last minute, and
// forgets what was before.
func (p *patience) spent(now time.Time) (sum time.Duration) {
	p.waited = slices.DeleteFunc(p.waited, func(w pause) bool { return now.Sub(w.end) > time.Minute })
	for _, w := range p.waited {
		sum += w.len
	}
	return sum
}

// wait calls ask with the time that the stream still has for m's file, in which l
// is, if it has any. The error of ask says whether that was long enough.
func (p *patience) wait(o *Options, m *module, l symbolize.Location, ask func(context.Context) error) {
	m.awaited.pending = true
	now := time.Now()
	left := p.left(o, m, now)
	if left <= 0 {
		return
	}
	parent := o.Context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, left)
	defer cancel()
	if p.vain {
		o.Symbolizer.AwaitLocal(ctx, l)
		p.stuck = ctx.Err() != nil
		cancel() // for servers nobody waits
	}
	err := ask(ctx)
	m.awaited.pending = errors.Is(err, symbolize.ErrPending)
	p.vain = m.awaited.pending
	if o.WaitPerMinute > 0 {
		p.waited = append(p.waited, pause{time.Now(), time.Since(now)})
	}
}
