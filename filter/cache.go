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

	mu         sync.RWMutex
	young, old generation // what is found in old moves to young
	size       int64      // bytes of young
	numbers    uint32     // modules that were given one; none is given twice
}

// generation is what was used in a stretch of time.
type generation struct {
	modules map[cacheModule]uint32
	frames  map[cacheKey]*rendered
}

func newGeneration() generation {
	return generation{make(map[cacheModule]uint32), make(map[cacheKey]*rendered)}
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
	return &Cache{budget: budget, young: newGeneration()}
}

// module returns the number of a module, from 1.
func (c *Cache) module(id buildid.ID, name string) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheModule{id, name}
	n, ok := c.young.modules[k]
	if ok {
		return n
	}
	if n, ok = c.old.modules[k]; !ok {
		c.numbers++
		n = c.numbers
	}
	c.grow(int64(160 + len(name) + id.Len()))
	c.young.modules[k] = n
	return n
}

// get returns what k was rendered as, or nil.
func (c *Cache) get(k cacheKey) *rendered {
	c.mu.RLock()
	r, isYoung := c.young.frames[k]
	if !isYoung {
		r = c.old.frames[k]
	}
	c.mu.RUnlock()
	if r != nil && !isYoung {
		c.put(k, r)
	}
	return r
}

// put keeps r, which must not change any more.
func (c *Cache) put(k cacheKey, r *rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young.frames[k] != r {
		c.grow(r.size())
		c.young.frames[k] = r
	}
}

// grow makes room for n bytes: when the young generation has its half of the
// budget, the old one is forgotten.
func (c *Cache) grow(n int64) {
	if c.size += n; c.size > c.budget/2 {
		c.old, c.young, c.size = c.young, newGeneration(), n
	}
}
