package follow

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The pace of checkpoints. Rare checkpoints mean more lines printed twice after a kill. Frequent
// checkpoints slow down the printing.
const (
	saveDelay  = 50 * time.Millisecond // usual time between output and its checkpoint
	saveBytes  = 1 << 20               // bytes of output after which a checkpoint is due at once
	saveWait   = 25 * time.Millisecond // longest wait of a checkpoint for sources that are printing
	saveShare  = 50                    // checkpoints take at most 1/50 of the time
	saveLatest = 10 * time.Second      // longest pause between two checkpoints, whatever their cost
	// longest pause between two checks of a stalled reader of the output
	saveStalled = time.Second
	saveRetry   = time.Second // pause after a checkpoint that could not be written
	// longest burst of one source's snapshots, about 20 of them, while the reader of the output is
	// slow
	snapBurst = time.Millisecond
	// interval between syncs, after which checkpoints survive a power cut
	syncInterval = 5 * time.Second
)

// A pacer decides when checkpoints are due.
type pacer struct {
	first time.Time     // first output without a checkpoint; zero: none
	bytes int64         // known size of that output
	next  time.Time     // earliest time of the next checkpoint
	cost  time.Duration // moving average of a checkpoint's cost
}

func (p *pacer) printed(now time.Time, n int64) {
	if p.first.IsZero() {
		p.first = now
	}
	p.bytes += n
}

// due returns the time of the next checkpoint. It returns false if no output needs a checkpoint.
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

// begin records the start of a checkpoint, which may leave out lines printed from now on.
func (p *pacer) begin() { p.first, p.bytes = time.Time{}, 0 }

func (p *pacer) end(now time.Time, cost time.Duration, failed bool) {
	if p.cost == 0 {
		p.cost = cost
	}
	p.cost = (3*p.cost + cost) / 4 // averaged, since the process may have waited for the processor
	pause := min((saveShare-1)*p.cost, saveLatest)
	if failed {
		pause = max(pause, saveRetry)
	}
	p.next = now.Add(pause)
}

// delay postpones the next checkpoint if the reader of the output made no progress at the last n
// checkpoints. The pause doubles with n, up to saveStalled.
func (p *pacer) delay(now time.Time, n int) {
	if at := now.Add(min(saveDelay<<min(n, 10), saveStalled)); n > 0 && at.After(p.next) {
		p.next = at
	}
}

// A saving is the state of a run's checkpoints. Only the goroutine of Run uses it.
type saving struct {
	pace  pacer
	timer *time.Timer
	state savingState
	dirty map[*source]bool // sources with output since their last snapshot
	asked int              // snapshots still expected
	cost  time.Duration    // cost of the snapshots so far
	wrote chan wrote

	taken   int64 // output bytes that the reader had taken at the last checkpoint
	stalled int   // checkpoints since then without progress of the reader

	syncing  bool
	nextSync time.Time
	secured  chan wrote // receives the outcome of a sync

	background sync.WaitGroup // goroutines that write and sync
}

type savingState int

const (
	idle    savingState = iota // the timer fires when a checkpoint is due
	asking                     // the timer fires when the wait for sources ends
	writing                    // the file is being written
)

// A wrote has the duration and the error of a write or sync of a checkpoint.
type wrote struct {
	took time.Duration
	err  error
}

func newSaving(now time.Time) saving {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return saving{timer: t, dirty: make(map[*source]bool), wrote: make(chan wrote, 1), nextSync: now.Add(syncInterval), secured: make(chan wrote, 1)}
}

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

// lookForChanges records output that sinks have printed without a turn.
func (r *run) lookForChanges() {
	if r.o.State == "" {
		return
	}
	for _, s := range r.sources {
		if !s.schedule.running && !r.dirty[s] && s.unsaved() {
			r.dirty[s] = true
			r.pace.printed(time.Now(), 0)
		}
	}
	r.arm()
}

func (r *run) arm() {
	if at, ok := r.pace.due(); ok && r.state == idle {
		r.timer.Reset(time.Until(at))
	}
}

// requestSnapshots is called when the timer fires. It requests snapshots from the sources with
// output. If the timer fires again before all snapshots have arrived, it writes the checkpoint
// without the missing snapshots.
func (r *run) requestSnapshots() {
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
			s.snapshots.wanted.Store(true)
			if !s.schedule.running { // a running source takes the snapshot at the end of its turn
				r.ready(s)
			}
		}
	}
}

func (r *run) write() {
	r.state = writing
	r.timer.Stop()
	r.background.Go(func() {
		begin := time.Now()
		err := r.saver.save()
		r.wrote <- wrote{time.Since(begin), err}
	})
}

func (r *run) written(w wrote) {
	r.endIfInUse(w.err)
	r.state = idle
	now := time.Now()
	r.pace.end(now, r.cost+w.took, w.err != nil)
	if r.saver.waits() {
		r.pace.printed(now, 0)
	}
	// a stalled reader does not need 20 checks per second
	taken, only := r.saver.waitsForReader()
	if r.stalled++; !only || taken != r.taken {
		r.taken, r.stalled = taken, 0
	}
	r.pace.delay(now, r.stalled)
	r.arm()
}

// endIfInUse ends Run if another process writes the state file.
func (r *run) endIfInUse(err error) {
	if r.err == nil && errors.Is(err, errInUse) {
		r.err = err
	}
}

// secure starts a goroutine that syncs checkpoints, if a sync is due.
func (r *run) secure() {
	if r.syncing || time.Now().Before(r.nextSync) || !r.saver.unsynced() {
		return
	}
	r.syncing = true
	r.background.Go(func() {
		begin := time.Now()
		err := r.saver.secure() // secure reports errors
		r.secured <- wrote{time.Since(begin), err}
	})
}

type snapshots struct {
	// request for the end of the turn; Run may set it during the turn
	wanted    atomic.Bool
	allowance time.Duration // time left for unrequested snapshots
	allowed   time.Time     // time at which allowance was computed
}

// affords reports whether the source may take an unrequested snapshot. With a pipe, each turn
// should end with a snapshot: the position of the pipe's reader decides which snapshot is valid.
// Unrequested snapshots take at most 1/saveShare of the time, except for a burst after silence.
func (s *snapshots) affords(now time.Time) bool {
	s.allowance = min(s.allowance+now.Sub(s.allowed)/saveShare, snapBurst)
	s.allowed = now
	return s.allowance > 0
}

func (s *snapshots) spend(cost time.Duration) { s.allowance -= cost }
