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
	inLostDatagrams          atomic.Int64 // dropped by the kernel; their size is unknown
	connections              atomic.Int64 // open now
	outBytes                 atomic.Int64
	outLost                  atomic.Int64 // bytes that no output accepted
	outErrors                atomic.Int64 // failed writes, including to replaced outputs
	writes                   writes
}

// lose counts a loss. bytes is 0 if the size is unknown.
func (c *counts) lose(bytes int64) {
	c.inLosses.Add(1)
	c.inLost.Add(bytes)
}

// tallies are the metrics of all pipelines together. They include removed pipelines, since totals
// must not decrease.
type tallies struct {
	outcomes [filter.Origins][filter.Results]atomic.Int64
	contexts atomic.Int64 // processes with known modules and maps
	evicted  [evictions]atomic.Int64

	mu        sync.Mutex
	followers map[*follow.Follower]*pipeline
	// checkpoint errors of ended followers
	checkpointErrors int64
}

// An eviction is a reason for dropping a context.
type eviction uint8

const (
	evictedLimit eviction = iota // a limit on contexts was reached
	evictedIdle                  // the peer had no connection for longer than limits.idle
	evictions
)

// String returns the reason as a word.
func (e eviction) String() string { return [evictions]string{"limit", "idle"}[e] }

// evictedProcess counts a process that a filter has dropped. It is safe for concurrent use.
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

// follows includes a follower in the metrics of p until unfollows is called.
func (t *tallies) follows(p *pipeline, f *follow.Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers == nil {
		t.followers = make(map[*follow.Follower]*pipeline)
	}
	t.followers[f] = p
}

func (t *tallies) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		f.Look()
	}
}

func (t *tallies) unfollows(f *follow.Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkpointErrors += f.Stats().CheckpointErrors
	delete(t.followers, f)
}

// followed has the metrics of all followers together.
type followed struct {
	lag              map[string]int64 // bytes, by pipeline
	checkpointAge    time.Duration    // maximum over all followers
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

// writes measures the writes to a pipeline's output. All its streams share the output.
type writes struct {
	mu   sync.Mutex
	open int // writes in progress
	// start of the first write in progress, or the end of the last write if that is later
	since time.Time
	total time.Duration // time with a write in progress, up to since
	err   error         // result of the last finished write
}

func (w *writes) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		w.since = now
	}
	w.open++
}

// end records the end of a write. errReplaced counts as a success, since a reload is not a fault of
// the output.
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
// stalled is the time without progress of the writes in progress; 0 if there are none.
func (w *writes) state(now time.Time) (total, stalled time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open > 0 {
		stalled = now.Sub(w.since)
	}
	return w.total + stalled, stalled, w.err
}

// A trouble records why an output with retries cannot write now, for example because of a full
// disk. It is safe for concurrent use.
type trouble struct {
	errors atomic.Int64 // failed attempts
	last   atomic.Pointer[error]
}

func (t *trouble) fail(err error) {
	t.errors.Add(1)
	t.last.Store(&err)
}

func (t *trouble) succeed() {
	if t.last.Load() != nil {
		t.last.Store(nil)
	}
}

// attempts returns the number of failed attempts, and the last error. The error is nil after a
// successful attempt.
func (t *trouble) attempts() (failed int64, last error) {
	if err := t.last.Load(); err != nil {
		last = *err
	}
	return t.errors.Load(), last
}

type attempting interface {
	attempts() (failed int64, last error)
}

// A turn has the time of the last progress of a session's filter: a finished write or lookup. The
// watchdog compares it with a limit. Patience bounds how long a lookup waits.
type turn struct {
	since   atomic.Int64 // house.clock at the last progress; 0: idle
	writing atomic.Bool  // the session waits for its output
}

func (t *turn) stuck(now, limit int64) bool {
	since := t.since.Load()
	return since != 0 && !t.writing.Load() && now-since > limit
}
