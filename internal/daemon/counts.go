package daemon

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/follow"
)

// counts are the metrics of one pipeline.
type counts struct {
	inLines, inBytes, inLost atomic.Int64
	inLosses                 atomic.Int64 // includes losses of unknown size
	inLostDatagrams          atomic.Int64 // dropped by the kernel; their size is not known
	connections              atomic.Int64 // open now
	outBytes                 atomic.Int64
	outLost                  atomic.Int64 // bytes that no output could accept
	outErrors                atomic.Int64 // failed writes, including to replaced outputs
	writes                   writes
}

// lose counts a loss of the given number of bytes, which is 0 if it is unknown.
func (c *counts) lose(bytes int64) {
	c.inLosses.Add(1)
	c.inLost.Add(bytes)
}

// tallies are the metrics of all pipelines together, including removed ones, so that no total
// decreases.
type tallies struct {
	outcomes [filter.Origins][filter.Results]atomic.Int64
	contexts atomic.Int64 // processes with known modules and maps
	evicted  [evictions]atomic.Int64

	mu        sync.Mutex
	followers map[*follow.Follower]*pipeline // running followers
	// checkpoint errors of ended followers
	checkpointErrors int64
}

// An eviction is the reason why a context was dropped.
type eviction uint8

const (
	evictedLimit eviction = iota // more or larger contexts than the configuration allows
	evictedIdle                  // the peer was disconnected for longer than limits.idle
	evictions
)

// String returns the reason as a word.
func (e eviction) String() string { return [evictions]string{"limit", "idle"}[e] }

// evictedProcess counts a process that a filter has dropped. Any goroutine may call it.
func (t *tallies) evictedProcess(_, _ string) { t.evicted[evictedLimit].Add(1) }

// add adds the difference between two states of a filter's counters.
func (t *tallies) add(now, before *filter.Stats) {
	for i := range now.Outcomes {
		for k := range now.Outcomes[i] {
			if n := now.Outcomes[i][k] - before.Outcomes[i][k]; n != 0 {
				t.outcomes[i][k].Add(n)
			}
		}
	}
}

// follows registers a follower of a pipeline, until unfollows is called.
func (t *tallies) follows(p *pipeline, f *follow.Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers == nil {
		t.followers = make(map[*follow.Follower]*pipeline)
	}
	t.followers[f] = p
}

// look makes all followers examine their files.
func (t *tallies) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		f.Look()
	}
}

// unfollows undoes follows.
func (t *tallies) unfollows(f *follow.Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkpointErrors += f.Stats().CheckpointErrors
	delete(t.followers, f)
}

// followed are the metrics of all followers.
type followed struct {
	lag              map[string]int64 // bytes, by pipeline
	checkpointAge    time.Duration    // the longest
	checkpointErrors int64
}

func (t *tallies) followed() followed {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := followed{lag: make(map[string]int64, len(t.followers)), checkpointErrors: t.checkpointErrors}
	for f, p := range t.followers {
		s := f.Stats()
		all.lag[p.name] += s.LagBytes
		all.checkpointAge = max(all.checkpointAge, s.CheckpointAge)
		all.checkpointErrors += s.CheckpointErrors
	}
	return all
}

// writes measures the writes to a pipeline's output, which its streams share.
type writes struct {
	mu   sync.Mutex
	open int // writes in progress
	// start of the first open write, or end of the last finished one if that is later
	since time.Time
	total time.Duration // total time with a write in progress, up to since
	err   error         // error of the last finished write
}

// begin begins a write.
func (w *writes) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		w.since = now
	}
	w.open++
}

// end ends a write. It does not record errReplaced: a reload is not a fault of the output.
func (w *writes) end(now time.Time, err error) {
	if errors.Is(err, errReplaced) {
		err = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += now.Sub(w.since)
	w.open--
	w.since, w.err = now, err
}

// state returns the total time with a write in progress, and the error of the last finished write.
// stalled is the time for which no write has returned although one is in progress.
func (w *writes) state(now time.Time) (total, stalled time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open > 0 {
		stalled = now.Sub(w.since)
	}
	return w.total + stalled, stalled, w.err
}

// A trouble records why an output that retries cannot write now: a full disk, or a peer without a
// connection. Outputs embed one. It is safe for concurrent use.
type trouble struct {
	errors atomic.Int64 // failed attempts
	last   atomic.Pointer[error]
}

// fail records a failed attempt.
func (t *trouble) fail(err error) {
	t.errors.Add(1)
	t.last.Store(&err)
}

// succeed records a successful attempt.
func (t *trouble) succeed() {
	if t.last.Load() != nil {
		t.last.Store(nil)
	}
}

// attempts returns the number of failed attempts, and the error of the last one. The error is nil
// if a later attempt has succeeded.
func (t *trouble) attempts() (failed int64, last error) {
	if err := t.last.Load(); err != nil {
		last = *err
	}
	return t.errors.Load(), last
}

// attempting is an output that retries failed attempts.
type attempting interface {
	attempts() (failed int64, last error)
}

// A turn shows the watchdog whether a session's filter is working, and since when it has made no
// progress. Progress is a finished write to the output or a finished lookup. A lookup waits no
// longer than the pipeline's patience.
type turn struct {
	since   atomic.Int64 // house.clock at the last progress; 0 while the session is idle
	writing atomic.Bool  // the session waits for its output
}

// stuck reports whether the filter has worked for longer than limit without progress.
func (t *turn) stuck(now, limit int64) bool {
	since := t.since.Load()
	return since != 0 && !t.writing.Load() && now-since > limit
}
