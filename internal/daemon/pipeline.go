package daemon

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/unpack"
)

// A runner reads an input.
type runner interface {
	// run gives lines to sessions of its pipeline until ctx is done or the input has ended. On
	// return, all lines that it has read are written, and its sessions are closed or suspended.
	// After an error, the input runs again after a pause.
	run(ctx context.Context) error

	// close releases the resources of an input that is not running.
	close() error
}

// Pauses before a failed input runs again.
const (
	restartFirst = time.Second
	restartMost  = 30 * time.Second
)

// A house is the state that all pipelines share.
type house struct {
	log       *slog.Logger
	ports     *ports
	webs      *webs
	unpacking *unpack.Memory // for all compressed inputs
	limits    atomic.Pointer[Limits]
	options   Options
	measures  *measures
	outputs   *outputs
	stdin     *lineReader
	states    stateRoom
	contexts  *contexts
	ledger    *ledger
	depotName string       // name of this process as a debuginfod server
	box       *confinement // nil: no sandbox
	began     time.Time

	leaving context.Context // done when the daemon ends
	leave   context.CancelFunc
}

// clock returns the nanoseconds since the start of the daemon, at least 1. Unlike the time of day,
// the clock never jumps.
func (h *house) clock() int64 { return max(1, int64(time.Since(h.began))) }

// A pipeline carries the lines of one input through the filters of its sessions to one output.
type pipeline struct {
	name  string
	house *house
	log   *slog.Logger
	state string          // prefix of the paths of its checkpoints; empty: none
	waits context.Context // once it is done, no line waits for debug files

	stage  atomic.Pointer[stage]
	counts counts
	memory *memory // contexts of the peers of listeners

	mu       sync.Mutex
	sessions map[*session]struct{}
	trouble  error     // why the input is not open; nil: open
	failed   time.Time // start of the last failed run
	unsaved  error     // reason for running without a checkpoint: a foreign file; else nil

	stop   context.CancelFunc // ends the input
	done   chan struct{}      // the input has ended
	unsent atomic.Int64       // bytes that peers of replaced outputs have not received
	last   atomic.Bool        // no later run continues reading the files
	ending atomic.Bool        // the daemon ends
}

// allUnsent is added to unsent while a replaced stage is closed, so that no byte counts as
// delivered. No output can owe as many bytes.
const allUnsent = 1 << 60

func newPipeline(name string, h *house, state string, first *stage) *pipeline {
	p := &pipeline{
		name: name, house: h, log: h.log.With("pipeline", name), state: state,
		waits: context.Background(), sessions: make(map[*session]struct{}),
	}
	p.stage.Store(first)
	p.memory = &memory{p: p, peers: make(map[string]*peer)}
	return p
}

// supervise runs the input until it ends or ctx is done. A failed input runs again after a pause.
// At the end, supervise closes the input and done.
func (p *pipeline) supervise(ctx context.Context, in runner, done chan struct{}) {
	defer close(done)
	for pause := restartFirst; ; pause = min(2*pause, restartMost) {
		begin := time.Now()
		// after this time without an error, the input counts as open
		works := time.AfterFunc(restartFirst, func() { p.works(begin) })
		err := in.run(ctx)
		works.Stop()
		if err == nil || ctx.Err() != nil {
			if err := in.close(); err != nil {
				p.log.Warn("closing the input", "error", err)
			}
			return
		}
		p.fails(begin, err)
		p.log.Error("the input has failed; retrying after a pause", "error", err, "pause", pause)
		if time.Since(begin) > restartMost {
			pause = restartFirst
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// halt ends the input, and waits until all its lines are written.
func (p *pipeline) halt() {
	if p.stop != nil {
		p.stop()
		<-p.done
	}
}

// replace sets the stage of the pipeline and of its sessions, and returns the previous stage. A
// session adopts the new stage after its current write.
func (p *pipeline) replace(to *stage) *stage {
	p.mu.Lock()
	before := p.stage.Load()
	failed, _ := before.attempts()
	if to.out == before.out {
		to.failed = before.failed + failed
	}
	p.counts.outErrors.Add(failed)
	p.stage.Store(to)
	p.mu.Unlock()
	before.end() // a blocked write continues with the new output
	for _, s := range p.open() {
		s.restage()
	}
	return before
}

// abandon ends the sessions that an input has left open. It writes nothing.
func (p *pipeline) abandon() {
	for _, s := range p.open() {
		s.mu.Lock()
		if !s.ended {
			s.finish()
		}
		s.mu.Unlock()
	}
}

func (p *pipeline) open() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.sessions))
}

func (p *pipeline) rest(now time.Time) {
	for _, s := range p.open() {
		s.rest(now.Add(-parkAfter))
	}
}

// works clears the recorded error of the input, unless the run that began at the time begin has
// failed.
func (p *pipeline) works(begin time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed.Before(begin) {
		p.trouble = nil
	}
}

// fails records the error of the run that began at begin.
func (p *pipeline) fails(begin time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble, p.failed = err, begin
}

// setUnsaved records whether the input runs without a checkpoint because a foreign file is at the
// checkpoint's path. It logs the reason once.
func (p *pipeline) setUnsaved(foreign bool, err error) {
	p.mu.Lock()
	before := p.unsaved
	if p.unsaved = nil; foreign {
		p.unsaved = err
	}
	p.mu.Unlock()
	if foreign && (before == nil || before.Error() != err.Error()) {
		p.log.Error("no checkpoint is kept: at the next start, files are read from start_at; remove the file that the error names, and restart", "error", err)
	}
}
