package seldom

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A message must pass once a minute, with the number of its occurrences since the last one that
// passed.
func TestMessagesPassOnceAMinute(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	var l Limiter
	for _, step := range []struct {
		after time.Duration
		n     int64
		ok    bool
	}{
		{0, 1, true},
		{time.Second, 0, false},
		{Pause - 1, 0, false},
		{Pause, 3, true},
		{Pause + 1, 0, false},
		{5 * Pause, 2, true},
		{6 * Pause, 1, true},
	} {
		if n, ok := l.May(begin.Add(step.after)); n != step.n || ok != step.ok {
			t.Errorf("after %v: %d, %v, want %d, %v", step.after, n, ok, step.n, step.ok)
		}
	}
}

// If messages come at the same moment, only one of them must pass, and the counts must include all
// of them.
func TestMessagesOfManyGoroutinesAreCounted(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	const each, goroutines = 1000, 8
	var l Limiter
	var passed, counted atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				if n, ok := l.May(now); ok {
					passed.Add(1)
					counted.Add(n)
				}
			}
		})
	}
	all.Wait()
	n, ok := l.May(now.Add(Pause))
	if total := counted.Load() + n; passed.Load() != 1 || !ok || total != goroutines*each+1 {
		t.Errorf("%d passed, %d counted, then %v; want 1, %d, true", passed.Load(), total, ok, goroutines*each+1)
	}
}
