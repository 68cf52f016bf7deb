package collector

import "sync"

// batches counts the batches that a processor works on, and admits none while the processor is
// stopped. Many goroutines may use it.
type batches struct {
	mu      sync.Mutex
	running bool
	in      sync.WaitGroup // added to only while running
}

// run admits batches if running is set. Otherwise no more batches are admitted.
func (b *batches) run(running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = running
}

// enter reports whether a batch may be processed. If so, leave must be called afterwards.
func (b *batches) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running {
		b.in.Add(1)
	}
	return b.running
}

func (b *batches) leave() { b.in.Done() }

// wait waits until all admitted batches have left.
func (b *batches) wait() { b.in.Wait() }
