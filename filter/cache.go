package filter

import (
	"sync"

	"github.com/symfilter/symfilter/buildid"
)

// DefaultCacheSize is the budget of a Filter's own Cache, in bytes: some
// 150,000 C++ frames.
const DefaultCacheSize = 32 << 20

// A Cache holds what addresses were rendered as, so that a frame seen before
// costs a map lookup. It is bounded in bytes and safe for many Filters at
// once; they must have equal Paths options. Only answers that cannot get
// better are kept: a pending or failed one never is.
type Cache struct {
	budget int64 // bytes for the two generations together

	mu      sync.RWMutex
	modules map[cacheModule]uint32
	young   map[cacheKey]*rendered
	old     map[cacheKey]*rendered // the generation before; what is found here moves to young
	size    int64                  // bytes of young
}

// cacheModule is a binary as one process names it: the name is part of what
// is rendered.
type cacheModule struct {
	id   buildid.ID
	name string
}

type cacheKey struct {
	rel    uint64 // module-relative address as looked up, before adjustment
	module uint32
	form   lookup
}

// NewCache returns a Cache of at most budget bytes; 0 means
// DefaultCacheSize.
func NewCache(budget int64) *Cache {
	if budget <= 0 {
		budget = DefaultCacheSize
	}
	return &Cache{
		budget:  budget,
		modules: make(map[cacheModule]uint32),
		young:   make(map[cacheKey]*rendered),
	}
}

// maxCacheModules bounds the names a Cache holds; beyond it, a module's
// frames are not cached until the Cache is emptied by its budget.
const maxCacheModules = 1 << 20

// module returns the number of a module, from 1; 0 when the Cache has no room
// for another.
func (c *Cache) module(id buildid.ID, name string) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheModule{id, name}
	n, ok := c.modules[k]
	if !ok {
		if len(c.modules) >= maxCacheModules {
			return 0
		}
		n = uint32(len(c.modules) + 1)
		c.modules[k] = n
	}
	return n
}

// get returns what k was rendered as, or nil.
func (c *Cache) get(k cacheKey) *rendered {
	c.mu.RLock()
	r := c.young[k]
	if r == nil && len(c.old) > 0 {
		if r = c.old[k]; r != nil {
			c.mu.RUnlock()
			c.put(k, r)
			return r
		}
	}
	c.mu.RUnlock()
	return r
}

// put keeps r, which must not change any more.
func (c *Cache) put(k cacheKey, r *rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.young[k]; ok {
		return
	}
	if c.size += r.size(); c.size > c.budget/2 {
		c.old, c.young, c.size = c.young, make(map[cacheKey]*rendered), r.size()
	}
	c.young[k] = r
}
