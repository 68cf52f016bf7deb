package daemon

import (
	"container/list"
	"sync"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/seldom"
)

// awakeMost is the maximum number of sessions with a filter. A filter that has printed a frame
// takes 150 KB, and its context 1.5 KB. Beyond the maximum, the sessions that have had a filter for
// longest are parked.
const awakeMost = 256

// contexts enforces the configured limits on the processes in the streams of all pipelines: their
// number and their bytes. At a limit, it drops the contexts of ended connections, longest idle
// first. A live stream never loses its context to a new stream. It is safe for concurrent use.
type contexts struct {
	house  *house
	logged seldom.Limiter // messages about reached limits

	mu    sync.Mutex
	n     int // processes in live streams, at least 1 for each stream, plus kept contexts
	bytes int64
	kept  list.List // *peer values with a context, longest idle first
	awake list.List // *session values with a filter, longest awake first
}

// A share is a session's part of the limits. Its fields are guarded by contexts.mu.
type share struct {
	n     int // processes, at least 1; 0: the session has not entered, or has left
	bytes int64
	awake *list.Element
}

// enter counts a session. It returns false if there is no room.
func (c *contexts) enter(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.share.n > 0 {
		return true
	}
	l := c.house.limits.Load()
	for c.n >= l.Contexts && c.dropOldest() {
	}
	if c.n >= l.Contexts {
		c.logReached("contexts", int64(l.Contexts))
		return false
	}
	s.share.n = 1
	c.n++
	return true
}

// set updates the share of a session that has entered. It returns false if the share's bytes have
// grown and all bytes together exceed the limit.
func (c *contexts) set(s *session, n int, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.share.n == 0 {
		return true
	}
	more := bytes > s.share.bytes
	c.n += n - s.share.n
	c.bytes += bytes - s.share.bytes
	s.share.n, s.share.bytes = n, bytes
	l := c.house.limits.Load()
	for (c.bytes > int64(l.ContextBytes) || c.n > l.Contexts) && c.dropOldest() {
	}
	if more && c.bytes > int64(l.ContextBytes) {
		c.logReached("context_bytes", int64(l.ContextBytes))
		return false
	}
	return true
}

// leave ends the share of a session.
func (c *contexts) leave(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n -= s.share.n
	c.bytes -= s.share.bytes
	c.sleepLocked(s)
	s.share = share{}
}

// borrow counts n bytes outside of contexts, for the buffer of a long line, or releases -n bytes.
// It returns false if there is no room for them.
func (c *contexts) borrow(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.house.limits.Load()
	for n > 0 && c.bytes+int64(n) > int64(l.ContextBytes) && c.dropOldest() {
	}
	if n > 0 && c.bytes+int64(n) > int64(l.ContextBytes) {
		c.logReached("context_bytes", int64(l.ContextBytes))
		return false
	}
	c.bytes += int64(n)
	return true
}

// lend counts n bytes of requests to the service, or releases -n bytes. It returns false if there
// is no room. Unlike borrow, it drops no context to make room.
func (c *contexts) lend(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.bytes+n > int64(c.house.limits.Load().ContextBytes) {
		return false
	}
	c.bytes += n
	return true
}

// limits returns the limits for the processes of a session: its share plus the free part. Kept
// contexts count as free in the number of processes.
func (c *contexts) limits(s *session) filter.Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.house.limits.Load()
	return filter.Limits{
		Processes:    max(1, s.share.n+l.Contexts-c.n+c.kept.Len()),
		ContextBytes: max(1, s.share.bytes+int64(l.ContextBytes)-c.bytes),
	}
}

// wake counts a session with a filter. If there are too many, it returns the session that the
// caller must park.
func (c *contexts) wake(s *session) (park *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.share.awake != nil {
		return nil
	}
	if c.awake.Len() >= awakeMost {
		park = c.awake.Front().Value.(*session)
		c.awake.MoveToBack(park.share.awake) // if it is busy, the next call returns another one
	}
	s.share.awake = c.awake.PushBack(s)
	return park
}

// filters returns the number of sessions with a filter.
func (c *contexts) filters() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awake.Len()
}

// sleep undoes wake.
func (c *contexts) sleep(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sleepLocked(s)
}

func (c *contexts) sleepLocked(s *session) {
	if s.share.awake != nil {
		c.awake.Remove(s.share.awake)
		s.share.awake = nil
	}
}

// keep stores the context of a peer without a connection, or drops it if there is no room. c.mu is
// held.
func (c *contexts) keep(q *peer, context []byte, used time.Time) {
	l := c.house.limits.Load()
	size := int64(len(context) + len(q.name))
	for (c.n >= l.Contexts || c.bytes+size > int64(l.ContextBytes)) && c.dropOldest() {
	}
	if c.n >= l.Contexts || c.bytes+size > int64(l.ContextBytes) {
		c.house.measures.evicted[evictedLimit].Add(1)
		return
	}
	c.n++
	c.bytes += size
	c.house.measures.contexts.Add(1)
	q.kept, q.used = context, used
	at := c.kept.Back() // saved contexts may arrive in any order
	for at != nil && at.Value.(*peer).used.After(used) {
		at = at.Prev()
	}
	if at == nil {
		q.place = c.kept.PushFront(q)
	} else {
		q.place = c.kept.InsertAfter(q, at)
	}
}

// take removes and returns the stored context of a peer, or returns nil if there is none. c.mu is
// held.
func (c *contexts) take(q *peer) (context []byte) {
	if q.place == nil {
		return nil
	}
	c.kept.Remove(q.place)
	c.n--
	c.bytes -= int64(len(q.kept) + len(q.name))
	c.house.measures.contexts.Add(-1)
	context, q.kept, q.place = q.kept, nil, nil
	return context
}

// drop removes the stored context of a peer, and counts the eviction. c.mu is held.
func (c *contexts) drop(q *peer, why eviction) {
	c.take(q)
	q.memory.changed.Store(true)
	c.house.measures.evicted[why].Add(1)
	q.memory.tidy(q)
}

// dropOldest drops the stored context that has been idle for longest. It returns false if there is
// none. c.mu is held.
func (c *contexts) dropOldest() bool {
	oldest := c.kept.Front()
	if oldest == nil {
		return false
	}
	c.drop(oldest.Value.(*peer), evictedLimit)
	return true
}

// expire drops the contexts of peers that have been disconnected for longer than limits.idle.
func (c *contexts) expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := time.Duration(c.house.limits.Load().Idle)
	for oldest := c.kept.Front(); idle > 0 && oldest != nil && now.Sub(oldest.Value.(*peer).used) > idle; oldest = c.kept.Front() {
		c.drop(oldest.Value.(*peer), evictedIdle)
	}
}

// logReached logs, at most once a minute, that a limit is reached.
func (c *contexts) logReached(limit string, value int64) {
	if n, ok := c.logged.May(time.Now()); ok {
		c.house.log.Warn("limits."+limit+" is reached: new streams are not remembered from line to line, and their frames may have no module; raise it, or separate fewer processes",
			"limit", value, "times", n)
	}
}
