package collector

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/symfilter/symfilter/filter"
)

const (
	// liveFor is how long a process is kept after its last record, even if another process needs
	// room. A flood of new keys must not make the logs of running processes unreadable.
	liveFor = time.Minute

	// streamBytes is the approximate memory of a stream without its context and key.
	streamBytes = 256
)

// emptyContext is the size of a context without modules, maps and facts.
var emptyContext = new(filter.Context).Size()

// A stream is the log of one process, with its context.
type stream struct {
	key  string
	temp bool // not remembered, since there is no room

	mu      sync.Mutex // held while the records of a batch are filtered
	context filter.Context
	loaded  bool // context was looked for in the storage
	kept    bool // the storage has a context
	warned  bool // frames without a module were logged
	inDict  bool // a hexdict is open

	snapshot latest // context to save

	// guarded by contexts.mu
	users int // batches that use it
	size  int
	dict  bool // inDict after the last batch: any next record may be part of the hexdict
	used  time.Time
	at    *list.Element
}

// contexts holds the streams of one processor within its limits. Many goroutines may use it.
type contexts struct {
	shared *shared

	mu    sync.Mutex
	of    map[string]*stream
	order list.List // *stream values, most recently used first
	bytes int
	dicts int // streams with an open hexdict
}

func newContexts(s *shared) *contexts {
	return &contexts{shared: s, of: make(map[string]*stream)}
}

// acquire returns the stream with the given key, new if there is none, and reports whether the
// stream has an open hexdict. The caller must release the stream.
func (c *contexts) acquire(key []byte, now time.Time) (_ *stream, dict bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[string(key)]
	if s == nil {
		s = &stream{key: string(key), users: 1, used: now}
		if len(c.of) >= c.shared.cfg.MaxContexts && !c.dropOldest(now) {
			s.temp = true
			c.shared.drop(evictedRefused)
			return s, false
		}
		s.size = streamBytes + len(key) + emptyContext
		c.bytes += s.size
		s.at = c.order.PushFront(s)
		c.of[s.key] = s
		c.count(1, s.size)
		return s, false
	}
	s.users++
	s.used = now
	c.order.MoveToFront(s.at)
	return s, s.dict
}

func (c *contexts) inDict() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dicts > 0
}

// hasDict reports whether the stream with a key has an open hexdict.
func (c *contexts) hasDict(key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[string(key)]
	return s != nil && s.dict
}

// release ends the use of a stream. size is the context's size. dict is set if a hexdict is
// open. A stream without a context is forgotten, since most texts with a mark have no frame.
func (c *contexts) release(s *stream, size int, dict bool, now time.Time) {
	if s.temp {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	if dict != s.dict {
		s.dict = dict
		if dict {
			c.dicts++
		} else {
			c.dicts--
		}
	}
	if size <= emptyContext && !dict && s.users == 0 {
		c.remove(s)
		return
	}
	more := streamBytes + len(s.key) + size - s.size
	s.size += more
	c.bytes += more
	c.count(0, more)
	for c.bytes > int(c.shared.cfg.MaxContextBytes) {
		if !c.dropOldest(now) {
			c.dropGrown(s, more)
			break
		}
	}
}

// dropOldest drops the unused stream with the oldest last record. It returns false if no unused
// stream was idle for liveFor. c.mu is held.
func (c *contexts) dropOldest(now time.Time) bool {
	for e := c.order.Back(); e != nil; e = e.Prev() {
		s := e.Value.(*stream)
		if now.Sub(s.used) < liveFor {
			return false
		}
		if s.users == 0 {
			c.remove(s)
			c.shared.stored.dropped(s, now)
			c.shared.drop(evictedLimit)
			return true
		}
	}
	return false
}

// dropGrown drops the context of s if the context has grown and no batch uses s. more is the growth
// in bytes. dropGrown is called if the contexts exceed their bound and no other stream can be
// dropped. c.mu is held.
func (c *contexts) dropGrown(s *stream, more int) {
	if more > 0 && s.users == 0 {
		c.remove(s)
		c.shared.stored.dropped(s, s.used)
		c.shared.drop(evictedRefused)
	}
}

// remove forgets a stream. c.mu is held.
func (c *contexts) remove(s *stream) {
	c.order.Remove(s.at)
	delete(c.of, s.key)
	c.bytes -= s.size
	c.count(-1, -s.size)
	if s.dict {
		c.dicts--
	}
}

func (c *contexts) count(n, bytes int) {
	c.shared.contexts.Add(int64(n))
	c.shared.contextBytes.Add(int64(bytes))
}

// expire drops the streams without a record for idle_timeout, from memory and from the storage.
func (c *contexts) expire(ctx context.Context, now time.Time) {
	idle := c.shared.cfg.IdleTimeout
	var keys []string
	c.mu.Lock()
	for e := c.order.Back(); e != nil; {
		s := e.Value.(*stream)
		e = e.Prev()
		if now.Sub(s.used) < idle {
			break
		}
		if s.users > 0 {
			continue
		}
		c.remove(s)
		c.shared.drop(evictedIdle)
		if s.kept {
			keys = append(keys, s.key)
		}
	}
	c.mu.Unlock()
	c.shared.forget(ctx, append(keys, c.shared.stored.expire(now, idle)...))
}

func (c *contexts) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.of {
		c.remove(s)
	}
}
