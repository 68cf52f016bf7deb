package filter

import (
	"sync"
	"sync/atomic"
	"unsafe"

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

	mu         sync.Mutex // held for less time than a reader would need to say that it reads
	young, old generation // what is found in old moves to young
	size       int64      // bytes of young
	numbers    uint32     // modules that were given one; none is given twice

	turns atomic.Uint32 // of generations; what is kept of an earlier one keeps large pieces of memory
}

// generation is what was used in a stretch of time. There may be a million
// answers: what the garbage collector would have to look at holds no pointers
// to each.
type generation struct {
	modules map[cacheModule]uint32
	frames  map[cacheKey]uint32 // in answers
	answers []keptAnswer
	text    arena[byte]
	cuts    arena[frameCuts]
	sources map[uint32]*sources // by answer; nil unless a printer prints elements
}

// keptAnswer is where a generation has the parts of an answer.
type keptAnswer struct {
	text, cuts span
	until      int64
	none, back bool
}

// newGeneration returns a generation with room for so many answers.
func newGeneration(n int) generation {
	return generation{
		modules: make(map[cacheModule]uint32),
		frames:  make(map[cacheKey]uint32, n),
		text:    arena[byte]{piece: 256 << 10},
		cuts:    arena[frameCuts]{piece: 4 << 10},
	}
}

// answer returns the i-th answer.
func (g *generation) answer(i uint32) rendered {
	d := g.draft(i)
	return rendered{unsafe.String(unsafe.SliceData(d.text), len(d.text)), d.renderedParts} // no byte of it changes any more
}

// draft returns the i-th answer to be copied.
func (g *generation) draft(i uint32) draft {
	p := &g.answers[i]
	return draft{g.text.at(p.text), renderedParts{g.cuts.at(p.cuts), p.until, p.none, p.back, g.sources[i]}}
}

// put keeps a copy of r, and returns the copy.
func (g *generation) put(k cacheKey, r *draft) rendered {
	i := uint32(len(g.answers))
	g.answers = append(g.answers, keptAnswer{g.text.add(r.text), g.cuts.add(r.cuts), r.until, r.none, r.back})
	g.frames[k] = i
	if r.sources != nil {
		if g.sources == nil {
			g.sources = make(map[uint32]*sources)
		}
		g.sources[i] = r.sources
	}
	return g.answer(i)
}

// adopt takes over the answers of o, to these keys, and the memory they are in:
// nothing may be put into o any more.
func (g *generation) adopt(keys []cacheKey, o *generation) {
	n, text, cuts := uint32(len(g.answers)), uint32(len(g.text.pieces)), uint32(len(g.cuts.pieces))
	g.text.pieces = append(g.text.pieces, o.text.pieces...)
	g.cuts.pieces = append(g.cuts.pieces, o.cuts.pieces...)
	for i, k := range keys {
		p := o.answers[i]
		p.text.piece += text
		p.cuts.piece += cuts
		g.answers = append(g.answers, p)
		g.frames[k] = n + uint32(i)
	}
	if g.sources == nil && o.sources != nil {
		g.sources = make(map[uint32]*sources, len(o.sources))
	}
	for i, s := range o.sources {
		g.sources[n+i] = s
	}
}

// arena holds slices of many lengths in few pieces of memory. What was added
// never moves.
type arena[T any] struct {
	piece  int // length of a piece; a longer slice has one of its own
	pieces [][]T
}

// span is where in an arena a slice is.
type span struct{ piece, start, n uint32 }

// room returns the last piece, which has room for n more.
func (a *arena[T]) room(n int) *[]T {
	last := len(a.pieces) - 1
	if last < 0 || cap(a.pieces[last])-len(a.pieces[last]) < n {
		a.pieces = append(a.pieces, make([]T, 0, max(n, a.piece)))
		last++
	}
	return &a.pieces[last]
}

func (a *arena[T]) add(v []T) span {
	p := a.room(len(v))
	*p = append(*p, v...)
	return span{uint32(len(a.pieces) - 1), uint32(len(*p) - len(v)), uint32(len(v))}
}

func (a *arena[T]) at(s span) []T {
	if s.n == 0 {
		return nil
	}
	return a.pieces[s.piece][s.start : s.start+s.n : s.start+s.n]
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
	return &Cache{budget: budget, young: newGeneration(0)}
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

// get returns what k was rendered as.
func (c *Cache) get(k cacheKey) (r rendered, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, ok := c.young.frames[k]; ok {
		return c.young.answer(i), true
	}
	i, ok := c.old.frames[k]
	if ok {
		r = c.keep(k, c.old.draft(i))
	}
	return r, ok
}

// mayHave reports whether k was rendered; false as well where that cannot be
// seen without waiting.
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

// put keeps a copy of r, and returns the copy.
func (c *Cache) put(k cacheKey, r draft) rendered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keep(k, r)
}

// keep is put while c is locked.
func (c *Cache) keep(k cacheKey, r draft) rendered {
	c.grow(r.size())
	return c.young.put(k, &r)
}

// adopt takes over the answers of g, of so many bytes.
func (c *Cache) adopt(keys []cacheKey, g *generation, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grow(size)
	c.young.adopt(keys, g)
}

// grow makes room for n bytes: when the young generation has its half of the
// budget, the old one is forgotten.
func (c *Cache) grow(n int64) {
	if c.size += n; c.size > c.budget/2 {
		c.old, c.young, c.size = c.young, newGeneration(len(c.young.frames)), n
		c.turns.Add(1)
	}
}
