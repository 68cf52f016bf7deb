package filter

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/symfilter/symfilter/buildid"
)

// DefaultCacheSize is the budget of a Filter's own Cache in bytes, enough for 150,000 C++ frames.
const DefaultCacheSize = 32 << 20

// A Cache holds rendered answers by address, up to a budget of bytes. Many Filters may share a
// Cache if their Options have equal Paths, Display.Own and Display.ShortNames.
//
// A provisional answer is kept only until a better one may exist. The result that no symbol covers
// an address is kept for two seconds. Errors are not kept.
type Cache struct {
	budget int64 // bytes of both generations

	mu         sync.Mutex // held so briefly that an RWMutex would be slower
	young, old generation // using an answer in old copies it to young
	size       int64      // bytes of young
	oldSize    int64      // bytes of old
	hits       int64      // lookups that found an answer
	misses     int64      // lookups without an answer
	numbers    uint32     // last number given to a module; numbers are not reused

	// number of changes of generation; after each change, Filters drop their references to older
	// answers, which would keep large pieces of memory alive
	turns atomic.Uint32
}

// A generation holds the answers used during some period. There may be a million answers, so they
// contain no pointers for the garbage collector to follow.
type generation struct {
	modules map[cacheModule]uint32
	frames  map[cacheKey]uint32 // indices in answers
	answers []keptAnswer
	text    arena[byte]
	cuts    arena[frameCuts]
	sources map[uint32]*sources // by index in answers; nil unless a Filter needs them
}

// A keptAnswer is an answer in a generation. Its text and cuts are spans of the generation's
// arenas.
type keptAnswer struct {
	text, cuts span
	until      int64
	system     uint32
	none, back bool
	ahead      bool // found by an ahead's worker, and not used yet
}

func newGeneration(n int) generation {
	return generation{
		modules: make(map[cacheModule]uint32),
		frames:  make(map[cacheKey]uint32, n),
		text:    arena[byte]{piece: 256 << 10},
		cuts:    arena[frameCuts]{piece: 4 << 10},
	}
}

func (g *generation) answer(i uint32) rendered {
	d := g.draft(i)
	text := unsafe.String(unsafe.SliceData(d.text), len(d.text)) // bytes in an arena do not change
	return rendered{text, d.renderedParts}
}

func (g *generation) draft(i uint32) draft {
	p := &g.answers[i]
	return draft{g.text.at(p.text), renderedParts{g.cuts.at(p.cuts), p.until, p.system, p.none, p.back, g.sources[i]}}
}

// put stores a copy of r under k, and returns the copy.
func (g *generation) put(k cacheKey, r *draft) rendered {
	i := uint32(len(g.answers))
	g.answers = append(g.answers, keptAnswer{text: g.text.add(r.text), cuts: g.cuts.add(r.cuts), until: r.until, system: r.system, none: r.none, back: r.back})
	g.frames[k] = i
	if r.sources != nil {
		if g.sources == nil {
			g.sources = make(map[uint32]*sources)
		}
		g.sources[i] = r.sources
	}
	return g.answer(i)
}

// adopt adds the answers of o, with their keys in the same order, and takes over their memory. The
// caller must not use o afterwards.
func (g *generation) adopt(keys []cacheKey, o *generation) {
	n, text, cuts := uint32(len(g.answers)), uint32(len(g.text.pieces)), uint32(len(g.cuts.pieces))
	g.text.pieces = append(g.text.pieces, o.text.pieces...)
	g.cuts.pieces = append(g.cuts.pieces, o.cuts.pieces...)
	for i, k := range keys {
		p := o.answers[i]
		p.text.piece += text
		p.cuts.piece += cuts
		g.answers = append(g.answers, p)
		if _, ok := g.frames[k]; !ok { // otherwise this or another Filter was faster
			g.frames[k] = n + uint32(i)
		}
	}
	if g.sources == nil && o.sources != nil {
		g.sources = make(map[uint32]*sources, len(o.sources))
	}
	for i, s := range o.sources {
		g.sources[n+i] = s
	}
}

// reset drops the answers, and keeps their memory for new answers.
func (g *generation) reset() {
	clear(g.frames)
	g.answers = g.answers[:0]
	g.text.reset()
	g.cuts.reset()
	g.sources = nil
}

// An arena stores slices in a few pieces of memory. A stored slice does not move.
type arena[T any] struct {
	piece  int // length of a piece; a longer slice gets a piece of its own
	pieces [][]T
	open   int // index of the piece being filled; adopted pieces may follow
}

type span struct{ piece, start, n uint32 }

// room returns a piece with room for n more elements, a new one if necessary.
func (a *arena[T]) room(n int) *[]T {
	if len(a.pieces) == 0 || cap(a.pieces[a.open])-len(a.pieces[a.open]) < n {
		a.open = len(a.pieces)
		a.pieces = append(a.pieces, make([]T, 0, max(n, a.piece)))
	}
	return &a.pieces[a.open]
}

// reset empties a, and keeps the memory of its first piece.
func (a *arena[T]) reset() {
	if len(a.pieces) > 0 {
		a.pieces = a.pieces[:1]
		a.pieces[0] = a.pieces[0][:0]
	}
	a.open = 0
}

func (a *arena[T]) add(v []T) span {
	p := a.room(len(v))
	*p = append(*p, v...)
	return span{uint32(a.open), uint32(len(*p) - len(v)), uint32(len(v))}
}

func (a *arena[T]) at(s span) []T {
	if s.n == 0 {
		return nil
	}
	return a.pieces[s.piece][s.start : s.start+s.n : s.start+s.n]
}

// A cacheModule identifies a module by its binary and by its logged name, which rendered text
// contains.
type cacheModule struct {
	id    buildid.ID
	name  string
	state string // state of a file without a build ID; see report.NameOf
}

type cacheKey struct {
	rel    uint64 // module-relative, as chooseAddress returns it
	module uint32
	form   lookup
}

// NewCache returns a Cache of at most budget bytes; 0 means DefaultCacheSize.
func NewCache(budget int64) *Cache {
	if budget <= 0 {
		budget = DefaultCacheSize
	}
	return &Cache{budget: budget, young: newGeneration(0)}
}

// module returns the number of a module, from 1. An unknown module gets a new number.
func (c *Cache) module(k cacheModule) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.young.modules[k]
	if ok {
		return n
	}
	if n, ok = c.old.modules[k]; !ok {
		c.numbers++
		n = c.numbers
	}
	c.grow(int64(160 + len(k.name) + len(k.state) + k.id.Len()))
	c.young.modules[k] = n
	return n
}

func (c *Cache) get(k cacheKey) (r rendered, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hits++
	if i, ok := c.young.frames[k]; ok {
		c.young.answers[i].ahead = false
		return c.young.answer(i), true
	}
	i, ok := c.old.frames[k]
	if !ok {
		c.hits--
		c.misses++
	} else {
		r = c.keep(k, c.old.draft(i))
	}
	return r, ok
}

// mayHave reports whether c has an answer for k. It does not wait: if c is locked, it returns
// false.
func (c *Cache) mayHave(k cacheKey) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	_, ok := c.young.frames[k]
	if !ok {
		_, ok = c.old.frames[k]
	}
	return ok
}

func (c *Cache) put(k cacheKey, r draft) rendered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keep(k, r)
}

// keep stores r under k, as put does, for callers that already hold c.mu.
func (c *Cache) keep(k cacheKey, r draft) rendered {
	c.grow(r.size())
	return c.young.put(k, &r)
}

// adopt adds the answers of g, with their keys in the same order, and takes over their memory of
// size bytes.
func (c *Cache) adopt(keys []cacheKey, g *generation, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grow(size)
	c.young.adopt(keys, g)
}

// copyOf adds copies of the answers of g, which were found ahead; keys has their keys in the same
// order. It skips answers that the young generation already has.
func (c *Cache) copyOf(keys []cacheKey, g *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		if _, ok := c.young.frames[k]; ok {
			continue // this or another Filter was faster
		}
		c.keep(k, g.draft(uint32(i)))
		c.young.answers[len(c.young.answers)-1].ahead = true
	}
}

// withdraw drops the answers with these keys that were found ahead and are not used yet.
func (c *Cache) withdraw(keys []cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range []*generation{&c.young, &c.old} {
		for _, k := range keys {
			if i, ok := g.frames[k]; ok && g.answers[i].ahead {
				delete(g.frames, k)
			}
		}
	}
}

// grow counts n more bytes in the young generation. Above half of the budget, the young generation
// replaces the old one, which is dropped.
func (c *Cache) grow(n int64) {
	if c.size += n; c.size > c.budget/2 {
		c.oldSize = c.size - n
		c.old, c.young, c.size = c.young, newGeneration(len(c.young.frames)), n
		c.turns.Add(1)
	}
}
