package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is the outcome of a source's turn.
type result struct {
	s     *source
	more  bool
	err   error
	given int64         // printed bytes
	asked bool          // a snapshot was requested
	cost  time.Duration // duration of the snapshot
}

// A run is the state of one call of Run.
type run struct {
	*Follower
	ctx        context.Context
	work       chan *source
	results    chan result
	ticks      int
	step       int       // intervals until the next tick
	ticked     time.Time // time of the last tick
	nextSafety int       // tick of the next check of all files, except idle files with events
	nextSweep  int       // tick of the next check that includes idle files with events
	nextChange int       // tick of the next look for changes of sinks
	err        error     // first error of a sink, or errInUse

	saving

	hurried  map[*source]bool // sources whose new files appear quickly, without events
	restless map[*source]bool // sources that need turns without an event
	swept    chan []check     // receives the checks of a sweep
	sweeping bool

	unmatched bool      // patterns without a match were reported
	turns     int       // turns started so far
	unopened  []*source // sources before their first turn, which opens their files
	opening   int       // sources whose first turn has not ended
	// results of first turns; their sources read no lines until a checkpoint records where they
	// begin
	held    []result
	flushed time.Time     // time of the last checkpoint by flush
	pause   time.Duration // pause before the next checkpoint by flush; it doubles each time
}

// Times and shares at the start of a run.
const (
	// pause before the first checkpoint, for which all printing waits
	firstPause = 50 * time.Millisecond
	// every second turn opens a file, even if other files have lines
	openShare = 2
)

// Run follows the files until ctx is done, a sink fails, or another process has replaced the
// checkpoint at Options.State. At the end, Run prints unfinished lines, unless the next run can
// reread them from a checkpoint. It closes the sinks, and then writes the last checkpoint. Its
// goroutines have ended when it returns. Run may be called once.
func (f *Follower) Run(ctx context.Context) error {
	if f.ran {
		return errors.New("Run was called a second time")
	}
	f.ran, f.began = true, time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.watcher = newWatcher(f.open, f.notify)
	f.disk.ctx = ctx
	n := f.o.Workers
	if n <= 0 {
		n = workers
	}
	r := &run{nextSafety: safetyPolls, Follower: f, ctx: ctx, work: make(chan *source, n), results: make(chan result, n), hurried: make(map[*source]bool), restless: make(map[*source]bool), swept: make(chan []check, 1), saving: newSaving(f.began)}
	var pool sync.WaitGroup
	for range n {
		pool.Go(r.worker)
	}
	r.loop(n)
	cancel()
	r.settle()
	f.watcher.Close()
	close(r.work)
	pool.Wait()
	return r.end()
}

func (r *run) worker() {
	var buf []byte
	for s := range r.work {
		if buf == nil {
			buf = make([]byte, r.turnSize())
		}
		s.given = 0
		d := result{s: s}
		d.more, d.err = s.turn(r.ctx, buf)
		s.lastProgress.set(s.files.progress())
		d.given = s.given
		d.asked = s.snapshots.wanted.Swap(false)
		if s.unsaved() && (d.asked || r.o.Taken != nil && s.snapshots.affords(time.Now())) {
			begin := time.Now()
			s.snapshot()
			d.cost = time.Since(begin)
			s.snapshots.spend(d.cost)
		}
		r.results <- d
	}
}

func (r *run) turnSize() int {
	if r.o.Taken != nil {
		return takenSize
	}
	return readSize
}

// loop starts turns, for n workers, until ctx is done or r.err is set.
func (r *run) loop(n int) {
	for _, s := range slices.SortedFunc(maps.Values(r.sources), func(a, b *source) int { return strings.Compare(a.path, b.path) }) {
		r.saver.restore(s)
		r.ready(s)
	}
	r.match(true)
	r.unopened, r.queue, r.opening = r.queue, nil, len(r.sources)
	for _, s := range r.unopened {
		s.schedule.opening = true
	}
	r.flushed, r.pause = time.Now(), firstPause
	r.step, r.ticked = 1, time.Now()
	ticker := time.NewTicker(r.interval())
	defer ticker.Stop()
	rest := time.NewTimer(0) // fires when events may be handled again
	defer rest.Stop()
	defer r.timer.Stop()
	wake := r.watcher.wake
	hurry := time.NewTicker(r.interval() / hurryShare)
	defer hurry.Stop()
	for {
		if len(r.hurried) == 0 {
			hurry.Stop()
		}
		for ; len(r.queue)+len(r.unopened) > 0 && r.busy < n; r.turns++ {
			queue := &r.queue
			if len(r.queue) == 0 || len(r.unopened) > 0 && r.turns%openShare == 0 {
				queue = &r.unopened
			}
			s := (*queue)[0]
			(*queue)[0] = nil
			*queue = (*queue)[1:]
			s.schedule.queued, s.schedule.running = false, true
			r.busy++
			r.work <- s
		}
		select {
		case <-r.ctx.Done():
			return
		case d := <-r.results:
			if r.finished(d); r.err != nil {
				return
			}
			r.hasten(ticker)
			if d.s.hurries() && !r.hurried[d.s] {
				r.hurried[d.s] = true
				hurry.Reset(r.interval() / hurryShare)
			}
		case <-hurry.C:
			for s := range r.hurried {
				if r.ready(s); !s.schedule.running && !s.hurries() {
					delete(r.hurried, s)
				}
			}
		case <-wake:
			r.changed(r.watcher.takeChanges())
			wake = nil
			rest.Reset(pace)
		case <-r.looks:
			r.nextSweep = r.ticks
			r.look()
		case checks := <-r.swept:
			r.sweptAll(checks)
		case <-rest.C:
			wake = r.watcher.wake
		case <-r.timer.C:
			r.requestSnapshots()
		case w := <-r.wrote:
			if r.written(w); r.err != nil {
				return
			}
			r.hasten(ticker)
		case w := <-r.secured:
			r.nextSync = time.Now().Add(max(syncInterval, saveShare*w.took))
			r.syncing = false
			if r.endIfInUse(w.err); r.err != nil {
				return
			}
		case <-ticker.C:
			if r.tick(); r.err != nil {
				return
			}
			if step := r.rests(); step != r.step {
				r.step = step
				ticker.Reset(time.Duration(step) * r.interval())
			}
		}
	}
}

// ready queues s, after its current turn if one is running.
func (r *run) ready(s *source) {
	switch {
	case s.schedule.running:
		s.schedule.again = true
	case !s.schedule.queued:
		s.schedule.queued = true
		r.queue = append(r.queue, s)
	}
}

// finished records the result of a turn. The result of a first turn waits for flush.
func (r *run) finished(d result) {
	r.busy--
	if d.s.schedule.opening {
		d.s.schedule.opening = false
		r.opening--
		r.held = append(r.held, d)
		if r.opening == 0 || r.early() {
			r.flush()
		}
		return
	}
	r.ended(d)
}

// early reports whether sources may print lines before all files are open. With a checkpoint, the
// next run reads each file without an entry from its beginning. So unless Start is Beginning,
// printing waits for a checkpoint that records where each file begins. If Start is Beginning,
// printing waits only for the pause after the last flush.
func (r *run) early() bool {
	return r.o.State == "" || r.o.Start == Beginning && time.Since(r.flushed) > r.pause
}

// flush writes a checkpoint of the open sources, and lets them print their lines.
func (r *run) flush() {
	held := r.held
	r.held = nil
	if r.o.State != "" {
		for _, d := range held {
			d.s.snapshot()
		}
		r.endIfInUse(r.saver.save()) // save reports other errors
		r.flushed, r.pause = time.Now(), 2*r.pause
	}
	for _, d := range held {
		r.ended(d)
	}
}

// ended processes the result of a turn. It records an error of the turn in r.err, which ends the
// run. Otherwise it queues the source again if the source has more to do.
func (r *run) ended(d result) {
	s := d.s
	s.schedule.running = false
	if s.attention || s.arrivals.silentFS {
		r.restless[s] = true
	} else {
		delete(r.restless, s)
	}
	if d.err != nil {
		if r.ctx.Err() == nil {
			r.err = d.err
		}
		return
	}
	if r.o.State != "" {
		r.printed(d)
	}
	if s.schedule.again || d.more || s.snapshots.wanted.Load() {
		s.schedule.again = false
		r.ready(s)
	}
}

func (r *run) changed(c changed) {
	for s := range c.sources {
		r.ready(s)
	}
	if c.all {
		r.readyAll()
	}
	if c.appeared || c.all {
		r.match(false)
	}
}

func (r *run) readyAll() {
	for _, s := range r.sources {
		r.ready(s)
	}
}

// tick starts turns of the sources whose changes cause no events. At longer intervals, it checks
// all files, calls Changed of all sinks, and syncs checkpoints.
func (r *run) tick() {
	r.ticks += r.step
	r.ticked = time.Now()
	if r.ticks >= r.nextSafety {
		r.look()
		r.disk.forgetFolders()
		r.forget()
		// not at the start: the program that writes the files may start later
		if !r.unmatched {
			r.unmatched = true
			r.notifyUnmatched()
		}
	} else {
		polls := r.ticks%max(1, len(r.sources)/pollShare) == 0
		for s := range r.restless {
			if !s.schedule.running && (s.attention || polls) {
				r.ready(s)
			}
		}
	}
	if r.ticks >= r.nextChange {
		r.nextChange = r.ticks + max(1, len(r.sources)/changeShare)
		r.lookForChanges()
	}
	r.secure()
}

// rests returns how many intervals must pass until a tick has something to do, at least 1. If all
// files are idle and have events, ticks only check all files or all sinks, at long intervals.
func (r *run) rests() int {
	if len(r.restless) > 0 || r.saver.unsynced() {
		return 1
	}
	return max(1, min(r.nextSafety, r.nextChange)-r.ticks)
}

// hasten moves the next tick to the end of this interval if the tick now has work.
func (r *run) hasten(ticker *time.Ticker) {
	if r.step == 1 || r.rests() > 1 {
		return
	}
	r.ticks += min(int(time.Since(r.ticked)/r.interval()), r.step-1)
	r.step = 1
	ticker.Reset(r.interval())
}

// look checks all files, and searches for new files. Idle files with events are examined only if
// their sweep is due.
func (r *run) look() {
	r.nextSafety = r.ticks + max(safetyPolls, len(r.sources)/safetyShare)
	due := r.ticks >= r.nextSweep
	if due {
		r.nextSweep = r.ticks + max(safetyPolls, len(r.sources)/sweepShare)
	}
	r.sweep(due)
	r.watcher.verify()
	r.match(false)
}

// settle waits until the workers are idle, and takes snapshots of all sources for the last
// checkpoint. Each snapshot has its own goroutine, since the reader of the output may block a
// worker or a sink forever.
func (r *run) settle() {
	var snapshots sync.WaitGroup
	defer snapshots.Wait()
	if r.o.State != "" {
		for _, s := range r.sources {
			if !s.schedule.running && s.unsaved() {
				snapshots.Go(s.snapshot)
			}
		}
	}
	for r.busy > 0 {
		d := <-r.results
		r.busy--
		d.s.schedule.running = false
		if r.err == nil && isSinkError(d.err) {
			r.err = d.err
		}
		if d.s.dirty && r.o.State != "" {
			snapshots.Go(d.s.snapshot)
		}
	}
}

// end finishes all sources, and writes the last checkpoint.
func (r *run) end() error {
	resumes := r.o.State != "" && !(r.o.Last != nil && r.o.Last())
	end := len(r.sources) > 1 // another file's lines may follow
	r.background.Wait()
	buf := make([]byte, readSize)
	all := slices.SortedFunc(maps.Values(r.sources), func(a, b *source) int { return strings.Compare(a.path, b.path) })
	for _, s := range all {
		if r.err == nil {
			if err := s.finish(buf, resumes, end); err != nil {
				r.err = err
			} else if resumes && s.unsaved() {
				s.snapshot()
			}
		}
		s.close()
	}
	if r.err == nil {
		r.saver.drain()
	}
	if err := r.saver.end(); err != nil && r.err == nil {
		r.err = err
	}
	if sink, ok := errors.AsType[sinkError](r.err); ok {
		return sink.error
	}
	return r.err
}
