// Package seldom limits a kind of message to one a minute. Otherwise input could cause any
// number of messages.
package seldom

import (
	"sync/atomic"
	"time"
)

// Pause is the time between two messages of a Limiter.
const Pause = time.Minute

// A Limiter limits one kind of message. The zero value is ready. Many goroutines may call May,
// which allocates nothing.
type Limiter struct {
	next    atomic.Int64 // Unix nanoseconds
	skipped atomic.Int64
}

// May reports whether a message may be logged at the time now. If so, n is the number of its
// occurrences since the last logged message, this one included.
func (l *Limiter) May(now time.Time) (n int64, ok bool) {
	next := l.next.Load()
	if now.UnixNano() < next || !l.next.CompareAndSwap(next, now.Add(Pause).UnixNano()) {
		l.skipped.Add(1)
		return 0, false
	}
	return l.skipped.Swap(0) + 1, true
}
