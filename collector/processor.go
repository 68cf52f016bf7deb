package collector

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"

	"github.com/symfilter/symfilter/filter"
)

const (
	// maxIdleWorkers bounds the workers kept for later batches, about 150 KiB each.
	maxIdleWorkers = 16

	// expireMost and expireLeast bound the interval between two searches for idle processes.
	expireMost, expireLeast = time.Minute, time.Second
)

// A logsProcessor filters the records of one pipeline, or the attributes of its spans.
type logsProcessor struct {
	life
	next consumer.Logs // gets late records; nil for traces, which have none

	// set by start
	contexts *contexts
	late     *late // nil without emit_late
	tasks    sync.WaitGroup

	resting sync.Mutex
	idle    []*worker // guarded by resting
}

func newLogsProcessor(set processor.Settings, cfg *Config, next consumer.Logs, f *factory) *logsProcessor {
	return &logsProcessor{life: life{set: set, cfg: cfg, factory: f}, next: next}
}

func (p *logsProcessor) start(ctx context.Context, host component.Host) error {
	if err := p.begin(ctx, host); err != nil {
		return err
	}
	p.contexts = newContexts(p.shared)
	if p.cfg.EmitLate && p.next != nil {
		p.late = newLate(p)
		p.shared.listen(p, true)
		p.tasks.Go(p.late.run)
	}
	p.tasks.Go(p.expireIdle)
	p.run(true)
	return nil
}

func (p *logsProcessor) shutdown(ctx context.Context) error {
	if !p.stop() {
		return nil
	}
	if p.late != nil {
		p.shared.listen(p, false)
	}
	p.tasks.Wait()
	p.contexts.close()
	return p.release(ctx)
}

// expireIdle drops idle processes periodically.
func (p *logsProcessor) expireIdle() {
	tick := time.NewTicker(min(max(p.cfg.IdleTimeout/8, expireLeast), expireMost))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.contexts.expire(p.live, now)
		case <-p.live.Done():
			return
		}
	}
}

// processLogs filters the records of a batch. Many goroutines may call it. It never fails:
// unresolved text passes unchanged. A batch after the shutdown also passes unchanged: a receiver
// may send it if its own shutdown has timed out.
func (p *logsProcessor) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	if w := p.worker(); w != nil {
		defer p.rest(w)
		w.batch(ctx, ld)
	}
	return ld, nil
}

// worker returns a worker for one batch, or nil if p is not running.
func (p *logsProcessor) worker() *worker {
	if !p.enter() {
		return nil
	}
	p.resting.Lock()
	defer p.resting.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w
	}
	return newWorker(p)
}

// rest ends a batch. It keeps the batch's worker for later batches, unless maxIdleWorkers workers
// are idle.
func (p *logsProcessor) rest(w *worker) {
	defer p.leave()
	p.resting.Lock()
	defer p.resting.Unlock()
	if len(p.idle) < maxIdleWorkers {
		p.idle = append(p.idle, w)
	}
}

func (p *logsProcessor) options() filter.Options {
	o := filter.Options{
		Context:     p.live,
		ModuleLines: filter.ModuleLinesRaw, // read again by a later stage, or after a restart
		Dialects:    filter.Dialects{None: true},
	}
	opened := p.shared.symbols
	if opened == nil {
		o.Symbolizer, o.Patience.Never = p.shared.locator, true
		return o
	}
	wait := p.cfg.Patience
	o.Symbolizer, o.Cache = opened.Symbolizer, opened.Cache
	o.Dialects = filter.Dialects{NoPaths: !p.cfg.Symbols.ModulePaths, Complete: opened.Complete, Whole: true}
	o.Patience = filter.Patience{
		Local: wait.Local, Servers: wait.Servers,
		// a batch waits for many files no longer than for one file
		PerMinute: wait.longest(),
		Never:     wait.longest() == 0,
		Asked:     p.shared.asked,
	}
	return o
}
