package daemon

import (
	"container/list"
	"sync"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/seldom"
)

// awakeMost bounds the sessions that have a filter. After its first frame, a filter takes 150 KB,
// while a parked context takes 1.5 KB. Beyond the bound, the session that has had its filter for
// longest is parked.
const awakeMost = 256

// contexts enforces limits on the processes of all pipelines: their number and their bytes. At a
// limit, contexts without a connection are dropped, longest idle first. A live stream keeps its
// context. A contexts is safe for concurrent use.
type contexts struct {
	house  *house
	logged seldom.Limiter

	mu    sync.Mutex
	n     int // processes of live streams, at least 1 for each stream, plus kept contexts
	bytes int64
	kept  list.List // *peer values with a context, longest idle first
	awake list.List // *session values with a filter, longest awake first
}

// A share is the part of the limits that a session uses. contexts.mu guards it.
type share struct {
	n     int // processes, at least 1; 0: the session is not counted
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

// set updates the share of a counted session, and drops stored contexts while a limit is exceeded.
// It returns false if the session's bytes have grown and limits.context_bytes is still exceeded.
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

func (c *contexts) leave(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n -= s.share.n
	c.bytes -= s.share.bytes
	c.sleepLocked(s)
	s.share = share{}
}

// borrow counts n bytes for the buffer of a long line. It returns false if there is no room. A
// negative n releases bytes.
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

// lend counts n bytes for requests to the service, or releases -n bytes. Unlike borrow, it drops no
// context to make room.
func (c *contexts) lend(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.bytes+n > int64(c.house.limits.Load().ContextBytes) {
		return false
	}
	c.bytes += n
	return true
}

// limits returns the limits for a session: the session's own share, plus the part of the limits
// that no session uses. For the number of processes, kept contexts count as unused, since they can
// be dropped.
func (c *contexts) limits(s *session) filter.Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.house.limits.Load()
	return filter.Limits{
		Processes:    max(1, s.share.n+l.Contexts-c.n+c.kept.Len()),
		ContextBytes: max(1, s.share.bytes+int64(l.ContextBytes)-c.bytes),
	}
}

// wake records that a session has a filter. If at least awakeMost other sessions have a filter,
// wake returns one of these sessions, which the caller must park.
func (c *contexts) wake(s *session) (park *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.share.awake != nil {
		return nil
	}
	if c.awake.Len() >= awakeMost {
		park = c.awake.Front().Value.(*session)
		// park may be busy: the next call returns another session
		c.awake.MoveToBack(park.share.awake)
	}
	s.share.awake = c.awake.PushBack(s)
	return park
}

func (c *contexts) filters() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awake.Len()
}

// sleep records that a session has no filter now.
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

// keep stores the context of a peer without a connection, if there is room. c.mu is held.
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

// take removes and returns the stored context of a peer, or nil without a stored context. c.mu is
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

// dropOldest drops the context that was idle for longest. It returns false if no context is stored.
// c.mu is held.
func (c *contexts) dropOldest() bool {
	oldest := c.kept.Front()
	if oldest == nil {
		return false
	}
	c.drop(oldest.Value.(*peer), evictedLimit)
	return true
}

// expire drops the contexts of peers without a connection for longer than limits.idle.
func (c *contexts) expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := time.Duration(c.house.limits.Load().Idle)
	for oldest := c.kept.Front(); idle > 0 && oldest != nil && now.Sub(oldest.Value.(*peer).used) > idle; oldest = c.kept.Front() {
		c.drop(oldest.Value.(*peer), evictedIdle)
	}
}

func (c *contexts) logReached(limit string, value int64) {
	if n, ok := c.logged.May(time.Now()); ok {
		c.house.log.Warn("limits."+limit+" is reached: the modules of new streams are forgotten after each line, so their frames may have no names; raise the limit, or use a key that separates fewer processes",
			"limit", value, "times", n)
	}
}
