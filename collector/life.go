package collector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor"
)

// A life is the common part of the processors of all signals: settings, shared resources and
// batches. Many goroutines may call enter and leave.
type life struct {
	set     processor.Settings
	cfg     *Config
	factory *factory

	// set by begin
	shared *shared
	live   context.Context // done after stop
	end    context.CancelFunc

	mu      sync.Mutex
	running bool
	batches sync.WaitGroup // added to only while running
}

// begin acquires the shared resources. The processor accepts batches only after run.
func (l *life) begin(ctx context.Context, host component.Host) (err error) {
	if l.shared, err = l.factory.acquire(ctx, l.set, l.cfg, host); err != nil {
		return err
	}
	l.live, l.end = context.WithCancel(context.Background())
	return nil
}

// run sets whether batches are accepted from now on.
func (l *life) run(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
}

// enter reports whether a batch may begin. If so, leave must be called.
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		l.batches.Add(1)
	}
	return l.running
}

func (l *life) leave() { l.batches.Done() }

// stop ends the waiting of current batches for files, and waits for the batches. It returns
// false if the processor was not started.
func (l *life) stop() bool {
	if l.shared == nil {
		return false
	}
	l.run(false)
	l.end()
	l.batches.Wait()
	return true
}

// release gives up the shared resources.
func (l *life) release(ctx context.Context) error {
	shared := l.shared
	l.shared = nil
	return shared.release(ctx)
}
