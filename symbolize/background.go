package symbolize

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Thresholds for making an index in the background. An index costs about as much as ten thousand
// lookups, and it is unknown how many lookups will follow. So an index is made once the lookups so
// far took 1/indexPart of the time that the index takes.
const (
	// bytes of debug information that one processor indexes in a second
	indexRate = 128 << 20
	indexPart = 16 // lookups must have taken 1/indexPart of the time to make the index
	// minimum number of lookups: a log with fewer addresses ends before its index is ready
	indexLookups = 4096
	// minimum number of lookups if sections are compressed: with an index the next process need not
	// inflate them
	packedAsks  = 8
	indexNice   = 5 // added to the nice value, since no line waits for an index
	maxIndexers = 4 // goroutines that make one index; each holds a few units
)

// background makes indexes in goroutines, one index at a time.
type background struct {
	busy  atomic.Bool
	part  time.Duration // indexPart, except in tests
	least int           // indexLookups
}

// A pin keeps a module's file open while its index is made or its sections are inflated, even if
// the module is closed meanwhile.
type pin struct {
	mu    sync.Mutex
	held  bool
	close func() error
}

// later reports whether the pin keeps the file open. If so, release calls close. If not, the caller
// must call close.
func (p *pin) later(close func() error) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.close = close
	}
	return p.held
}

// isHeld reports whether the pin keeps the file open. If so, closing the module frees no memory.
func (p *pin) isHeld() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

func (p *pin) release() {
	p.mu.Lock()
	p.held = false
	close := p.close
	p.mu.Unlock()
	if close != nil {
		close()
	}
}

func (b *background) paysToIndex(m *module) bool {
	if m.index != nil || len(m.source.ID) == 0 || m.dw == nil || m.packed || m.fault != nil || m.lookups < packedAsks {
		return false
	}
	return m.inflated || m.lookups >= b.least && m.cost > m.indexPrice()/b.part
}

// indexPrice estimates the time that one processor takes to make m's index.
func (m *module) indexPrice() time.Duration {
	var n uint64
	for _, name := range []string{".debug_info", ".debug_line"} {
		if s, ok := m.obj.Section(name); ok {
			n += s.Size
		}
	}
	return time.Duration(n) * time.Second / indexRate
}

// index starts a goroutine that makes the index of e's module. It does so only if the index pays
// off, there is memory for it, and no other index is being made. Close waits for the goroutine.
// e.mu is held.
func (s *Symbolizer) index(e *entry) {
	m := e.module
	if m == nil || e.unindexed || !s.background.paysToIndex(m) || !s.background.busy.CompareAndSwap(false, true) {
		return
	}
	s.cache.mu.RLock()
	defer s.cache.mu.RUnlock()
	// memory for names and a few units, estimated as a quarter of the debug information
	held := min(int64(m.indexPrice())/int64(time.Second/indexRate)/4, s.cache.memory.limit()/2)
	if s.cache.closed || !s.cache.memory.take(held, &s.cache.memory.work) {
		s.background.busy.Store(false)
		return
	}
	x := newIndexer(m.obj, m.dw)
	x.workers = min(max(1, s.o.jobs()-1), maxIndexers)
	x.begin = lessImportant
	crew := m.crew
	crew.pause(true)
	m.pin = &pin{held: true}
	p, path, dir, source := m.pin, m.path, m.dir, m.source
	s.tasks.Go(func() {
		defer s.background.busy.Store(false)
		defer s.cache.memory.give(held, &s.cache.memory.work)
		lessImportant()
		err := guard(func() error {
			if x, err := dir.Open(source); err == nil { // another process was faster
				return x.Close()
			}
			if err := x.plan(); err != nil {
				return err
			}
			_, err := x.put(s.ctx, dir, source)
			return err
		})
		p.release()
		crew.pause(false)

		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil {
			e.unindexed = s.ctx.Err() == nil
			e.notePanic(path, err)
			if errors.Is(err, errDear) {
				e.owes += x.spent.Load()
			}
			return
		}
		if e.module == m {
			s.adopt(e)
		}
	})
}

func lessImportant() {
	// the thread is never unlocked: it exits with the goroutine, so its lowered priority affects
	// nothing else
	runtime.LockOSThread()
	lowerPriority(indexNice)
}

// adopt makes e's module answer from its new index; e.mu is held.
func (s *Symbolizer) adopt(e *entry) {
	m := e.module
	// without guard, a fault in the mapped index would end the program
	e.notePanic(m.path, guard(func() error {
		m.useIndex(&s.o)
		return nil
	}))
	if m.index == nil {
		e.unindexed = true
		return
	}
	m.closeCrew()
	m.known, m.symbols = knownNames{}, knownNames{}
	if m.inflated { // the next question opens the file from scratch and inflates nothing
		s.cache.suspend(e)
		return
	}
	m.dw.Shrink(0)
	m.obj.ReleasePages()
	s.cache.account(e)
}
