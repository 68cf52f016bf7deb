package symbolize

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/symfilter/symfilter/buildid"
)

// A cache holds the entries of a Symbolizer and the ledger of their memory. Lock order: an entry's
// mu before the cache's mu. A goroutine that holds the cache's mu may only try to lock an entry's
// mu.
type cache struct {
	mu      sync.RWMutex
	entries map[key]*entry
	closed  bool // set by Close: no entries are added after it

	clock  atomic.Uint64 // questions so far, as the clock of the least-recently-used order
	memory memory

	counts counts
}

// A key names a module by its build ID, or by its name if it has no ID.
type key struct {
	id   buildid.ID
	name string // at most maxModuleName bytes; empty if there is an ID
}

func keyOf(id buildid.ID, name string) key {
	if id.IsZero() {
		return key{name: clipName(name)}
	}
	return key{id: id}
}

// entry returns the entry of a module, a new one if necessary.
func (c *cache) entry(id buildid.ID, name string) (*entry, error) {
	k := keyOf(id, name)
	c.mu.RLock()
	e, closed := c.entries[k], c.closed
	c.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	if e != nil {
		return e, nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if e := c.entries[k]; e != nil {
		return e, nil
	}
	if len(c.entries) >= maxEntries {
		c.forget()
	}
	e = &entry{key: k}
	e.used.Store(c.clock.Load())
	c.entries[k] = e
	c.account(e) // no lock needed: no other goroutine has e yet
	return e, nil
}

// existing returns the entry of a module, or nil before the first question about it.
func (c *cache) existing(id buildid.ID, name string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[keyOf(id, name)]
}

// forget makes room for new entries: it drops entries with neither a file nor a task, and skips
// locked entries. It first drops the entries that were last used during the older half of all
// questions. If there are still maxEntries entries, it drops the others, too. c.mu is held.
func (c *cache) forget() {
	now := c.clock.Load()
	for _, young := range []uint64{now / 2, now + 1} {
		for _, e := range c.entries {
			if e.used.Load() >= young || !e.mu.TryLock() {
				continue
			}
			if e.module == nil && e.task == nil {
				c.remove(e)
			}
			e.mu.Unlock()
		}
		if len(c.entries) < maxEntries {
			return
		}
	}
}

// remove forgets e, which has neither a file nor a task; c.mu and e.mu are held.
func (c *cache) remove(e *entry) {
	e.state = forgotten
	delete(c.entries, e.key)
	c.memory.heap.Add(-e.heap)
	e.heap = 0
}

func (c *cache) all() []*entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.entries))
}

// suspend closes e's file to save memory; e.mu is held. The next question opens it again.
func (c *cache) suspend(e *entry) {
	if e.module == nil {
		return
	}
	c.counts.closed.Add(1)
	// while a search or an inflation runs, questions wait for its end, and then start another
	// search
	provisional := e.isProvisional()
	c.shut(e)
	if !provisional {
		e.state = suspended
	}
}

// shut closes e's file, if it is open; e.mu is held. The next question opens it again.
func (c *cache) shut(e *entry) error {
	if e.module == nil {
		return nil
	}
	err := e.module.close()
	e.module, e.state = nil, unsought
	c.account(e)
	return err
}
