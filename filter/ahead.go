package filter

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/symfilter/symfilter/markup"
)

// An ahead resolves the frames of a block on another processor: from the end of the block
// backwards, while the Filter filters it from its beginning, until they meet. It prints nothing;
// the Filter takes the answers from it. It asks only questions that the symbolizer answers at once.
// About the module that the Filter asks for at the moment it uses only an index, because debug
// information is read by one goroutine at a time.
//
// Until they meet, neither writes to memory that the other reads, except for atomic fields: a lock
// for each frame would cost more time than the second processor saves.
type ahead struct {
	asker // its own
	space *space
	near  interval // the last interval found

	found generation // the answers of the block
	keys  []cacheKey // of found, in its order
	size  int64      // bytes of found

	at    atomic.Int64 // offset in the block that the Filter has reached
	stop  atomic.Bool
	met   atomic.Bool // found does not change any more
	ended sync.WaitGroup

	before int // new answers before the current block, by the Filter and the ahead
}

const (
	aheadBlock  = 64 << 10 // bytes; a smaller block is not worth another goroutine
	aheadPart   = 8 << 10  // bytes resolved between two looks at the Filter's offset
	aheadStep   = 1 << 10  // bytes between offsets that the Filter stores; each line: 5 % of a frame
	aheadNew    = 256      // new answers in a block; then the next may have many, too
	aheadVain   = 32       // addresses in a part without a new answer; then the ahead gives up
	aheadWorker = 2        // processors, at least
	aheadShare  = 4        // a block may take this fraction of the Cache's budget: 1/4
)

// errNotAtOnce is returned if the symbolizer has no answer without waiting.
var errNotAtOnce = errors.New("not known at once")

// lookAhead starts to resolve b ahead if that is expected to save time.
func (f *Filter) lookAhead(b []byte) {
	a := f.ahead
	if len(b) < aheadBlock || f.o.Symbolizer == nil || f.o.Patience.Never || f.o.ProcessKey != nil || f.entered || runtime.GOMAXPROCS(0) < aheadWorker {
		return
	}
	if a == nil {
		a = new(ahead)
		a.opt, a.cached, a.aheadOf = &f.o, f.cached, &f.asker
		a.renderer = renderer{paths: f.renderer.paths, own: f.renderer.own, short: f.renderer.short, sources: f.renderer.sources}
		f.ahead = a
	}
	n := f.rendered + a.rendered
	many := n-a.before >= aheadNew
	a.before = n
	if !many {
		return
	}
	a.space, a.near = &f.process.space, interval{}
	a.found, a.keys, a.size = newGeneration(len(a.keys)), a.keys[:0], 0
	a.at.Store(0)
	a.stop.Store(false)
	a.met.Store(false)
	a.ended.Go(func() {
		a.run(b)
		a.met.Store(true)
		a.cached.adopt(a.keys, &a.found, a.size)
	})
}

// answer returns an answer that the ahead has found.
func (a *ahead) answer(k cacheKey) (r rendered, ok bool) {
	if a == nil || !a.met.Load() {
		return r, false
	}
	i, ok := a.found.frames[k]
	if ok {
		r = a.found.answer(i)
	}
	return r, ok
}

// endAhead stops the ahead and waits for its end: before the space changes, and at the end of its
// block.
func (f *lineFilter) endAhead() {
	if f.ahead != nil {
		f.ahead.stop.Store(true)
		f.ahead.ended.Wait()
	}
}

func (a *ahead) run(b []byte) {
	for hi := len(b); hi > 0; {
		lo := max(0, hi-aheadPart)
		asked, found := 0, a.rendered
		for at := lo; at < hi; {
			n, _ := FindOpen(b[at:hi])
			if at += n; at == hi {
				break
			}
			e, _, n := markup.LeadingBT(b[at:])
			at += max(n, len(markupOpen))
			if n == 0 {
				continue
			}
			if a.stop.Load() || a.at.Load() >= int64(hi) || a.size > a.cached.budget/aheadShare {
				return
			}
			a.resolve(&frameFields{e.Frame, e.Addr, e.Kind})
			asked++
		}
		if asked >= aheadVain && a.rendered == found {
			return
		}
		hi = lo
	}
}

// resolve adds the answer for a frame to a.found, if the symbolizer has it at once.
func (a *ahead) resolve(e *frameFields) {
	form := lookupOfFrame(e)
	here, back := a.find(e.addr), interval{}
	if form != exactAddress && e.addr > 0 {
		back = a.find(e.addr - 1)
	}
	at, form := chooseAddress(here, back, e.addr, form)
	if at.mod == nil {
		return
	}
	key := a.key(at.mod, at.rel, form)
	if _, ok := a.found.frames[key]; ok || a.cached.mayHave(key) {
		return
	}
	if text, ok, _ := a.render(at.mod, at.rel, form); ok {
		a.found.put(key, &text)
		a.keys = append(a.keys, key)
		a.size += text.size()
	}
}

// find is space.find for a reader that must not write to the space.
func (a *ahead) find(addr uint64) interval {
	if a.near.mod == nil || addr < a.near.start || addr > a.near.end {
		a.near = a.space.covering(addr)
	}
	return a.near
}
