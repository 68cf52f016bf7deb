package follow

import (
	"sync"
	"time"
)

// When checkpoints are written. What was printed since the last one comes twice if the process is
// killed; what a checkpoint costs is lost to the log.
const (
	saveDelay    = 50 * time.Millisecond // between output and its checkpoint, as a rule
	saveBytes    = 1 << 20               // bytes given to sinks after which there is no delay
	saveWait     = 25 * time.Millisecond // that a checkpoint waits for sources that are printing
	saveShare    = 50                    // checkpoints take at most 1/50 of the time
	saveLatest   = 10 * time.Second      // between two of them, whatever they cost
	saveRetry    = time.Second           // after one that could not be written
	snapBurst    = time.Millisecond      // of snapshots of a source at once, for what its output's reader has taken only in part: some 20
	syncInterval = 5 * time.Second       // between syncs, which make checkpoints survive a power cut
)

// A pacer says when checkpoints are due.
type pacer struct {
	first time.Time     // when something was printed that no checkpoint holds; zero: nothing was
	bytes int64         // how much, or less if it is not known
	next  time.Time     // no checkpoint before
	cost  time.Duration // of a checkpoint, averaged over the last ones
}

// printed takes in that n bytes were printed.
func (p *pacer) printed(now time.Time, n int64) {
	if p.first.IsZero() {
		p.first = now
	}
	p.bytes += n
}

// due returns when the next checkpoint is due. It reports false if there is nothing to be written.
func (p *pacer) due() (time.Time, bool) {
	if p.first.IsZero() {
		return time.Time{}, false
	}
	at := p.first
	if p.bytes < saveBytes {
		at = at.Add(saveDelay)
	}
	if at.Before(p.next) {
		at = p.next
	}
	return at, true
}

// begin takes in that a checkpoint begins: what is printed from now on may be missing in it.
func (p *pacer) begin() { p.first, p.bytes = time.Time{}, 0 }

// end takes in that a checkpoint was written, or could not be, and what it took.
func (p *pacer) end(now time.Time, cost time.Duration, failed bool) {
	if p.cost == 0 {
		p.cost = cost
	}
	p.cost = (3*p.cost + cost) / 4 // once in a while another process has the processor
	pause := min((saveShare-1)*p.cost, saveLatest)
	if failed {
		pause = max(pause, saveRetry)
	}
	p.next = now.Add(pause)
}

// saving is how the checkpoints of a run come about. It belongs to the goroutine of Run.
type saving struct {
	pace  pacer
	timer *time.Timer
	state savingState
	dirty map[*source]bool // have printed something that no snapshot says
	asked int              // snapshots that are waited for
	cost  time.Duration    // of those that were taken
	wrote chan wrote

	syncing  bool
	nextSync time.Time
	secured  chan time.Duration // what a sync took

	background sync.WaitGroup // writing and syncing
}

type savingState int

const (
	idle    savingState = iota // the timer runs out when a checkpoint is due
	asking                     // the timer runs out when sources have been waited for long enough
	writing                    // the file
)

// wrote is how the writing of a checkpoint ended.
type wrote struct {
	took time.Duration
	err  error
}

func newSaving(now time.Time) saving {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return saving{timer: t, dirty: make(map[*source]bool), wrote: make(chan wrote, 1), nextSync: now.Add(syncInterval), secured: make(chan time.Duration, 1)}
}

// printed takes in what a turn came to.
func (r *run) printed(d result) {
	s := d.s
	if d.given > 0 || s.dirty && !r.dirty[s] || d.cost > 0 && r.state != asking {
		r.pace.printed(time.Now(), d.given)
	}
	if s.dirty {
		r.dirty[s] = true
	} else {
		delete(r.dirty, s)
	}
	if d.asked {
		r.cost += d.cost
		if r.asked--; r.asked <= 0 && r.state == asking {
			r.write()
		}
	}
	r.arm()
}

// lookForChanges takes in what sinks have printed without a turn.
func (r *run) lookForChanges() {
	if r.o.State == "" {
		return
	}
	for _, s := range r.sources {
		if !s.running && !r.dirty[s] && s.unsaved() {
			r.dirty[s] = true
			r.pace.printed(time.Now(), 0)
		}
	}
	r.arm()
}

// arm sets the timer to when the next checkpoint is due.
func (r *run) arm() {
	if at, ok := r.pace.due(); ok && r.state == idle {
		r.timer.Reset(time.Until(at))
	}
}

// checkpoint does what is due when the timer has run out: it asks sources for what they have
// printed, or writes that.
func (r *run) checkpoint() {
	switch r.state {
	case asking:
		r.write()
	case idle:
		r.pace.begin()
		r.state, r.cost, r.asked = asking, 0, len(r.dirty)
		if r.asked == 0 {
			r.write()
			return
		}
		r.timer.Reset(saveWait)
		for s := range r.dirty {
			s.wanted.Store(true)
			if !s.running { // else at the end of its turn
				r.ready(s)
			}
		}
	}
}

// write has the checkpoint written in a goroutine.
func (r *run) write() {
	r.state = writing
	r.timer.Stop()
	r.background.Go(func() {
		begin := time.Now()
		err := r.saver.save()
		r.wrote <- wrote{time.Since(begin), err}
	})
}

// written takes in that the checkpoint was written, or could not be.
func (r *run) written(w wrote) {
	r.state = idle
	now := time.Now()
	r.pace.end(now, r.cost+w.took, w.err != nil)
	if r.saver.waits() {
		r.pace.printed(now, 0)
	}
	r.arm()
}

// secure has checkpoints synced in a goroutine, if it is time.
func (r *run) secure() {
	if r.syncing || time.Now().Before(r.nextSync) || !r.saver.unsynced() {
		return
	}
	r.syncing = true
	r.background.Go(func() {
		begin := time.Now()
		r.saver.secure() // it tells what is wrong
		r.secured <- time.Since(begin)
	})
}

// affords reports whether the source may take a snapshot that nobody has asked for. When the output
// is a pipe, each turn should end with one: it depends on the reader which of them counts. They take
// no more of the time than checkpoints do, but for a burst after silence.
func (s *source) affords(now time.Time) bool {
	s.allowance = min(s.allowance+now.Sub(s.allowed)/saveShare, snapBurst)
	s.allowed = now
	return s.allowance > 0
}
