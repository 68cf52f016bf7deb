package filter

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/symfilter/symfilter/markup"
)

// An ahead resolves the frames of a block on another processor: from its end
// on backwards, while the Filter filters it from its beginning, until they
// meet. It prints nothing; the Filter finds the answers here when it comes to
// ask for them. It asks only what the symbolizer answers at once, and leaves
// the module to the Filter that this asks about: debug information is read by
// one goroutine at a time.
//
// The two share nothing that they write to until they meet: a lock at each
// frame would cost more than the second processor gains.
type ahead struct {
	asker // its own
	space *space
	near  interval // the last one found

	found generation // the answers of the block
	keys  []cacheKey // of found, in its order
	size  int64      // bytes of found

	at    atomic.Int64 // of the block: how far the Filter is
	stop  atomic.Bool
	met   atomic.Bool // found changes no more
	ended sync.WaitGroup

	before int // answers that were new until the block at work, of the Filter and of the ahead
}

const (
	aheadBlock  = 64 << 10 // bytes of a block that are worth another goroutine
	aheadPart   = 8 << 10  // bytes resolved before the Filter's place is looked at again
	aheadStep   = 1 << 10  // bytes from one place that the Filter tells to the next: to tell each line would take 5 % of a hot frame
	aheadNew    = 256      // new answers in a block, after which the next is expected to have many, too
	aheadVain   = 32       // addresses in a part, or more, of which none is new: it is in vain
	aheadWorker = 2        // processors there must be
	aheadShare  = 4        // of the Cache's budget a block may have one part in so many
)

// errNotAtOnce says that an answer would have to be waited for.
var errNotAtOnce = errors.New("not known at once")

// lookAhead starts to resolve b ahead, if that seems to pay.
func (f *Filter) lookAhead(b []byte) {
	a := f.ahead
	if len(b) < aheadBlock || f.o.Symbolizer == nil || f.o.Patience.Never || f.o.ProcessKey != nil || runtime.GOMAXPROCS(0) < aheadWorker {
		return
	}
	if a == nil {
		a = new(ahead)
		a.opt, a.cached, a.aheadOf = &f.o, f.cached, &f.asker
		a.renderer = renderer{paths: f.renderer.paths, sources: f.renderer.sources}
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

// answer returns what was found out ahead.
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

// endAhead waits until nothing is resolved ahead: before what that reads
// changes, and when its block ends.
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
			e, n := markup.LeadingBT(b[at:])
			at += max(n, len(markupOpen))
			if n == 0 {
				continue
			}
			if a.stop.Load() || a.at.Load() >= int64(hi) || a.size > a.cached.budget/aheadShare {
				return
			}
			a.resolve(e)
			asked++
		}
		if asked >= aheadVain && a.rendered == found {
			return
		}
		hi = lo
	}
}

// resolve puts the answer for e into the Cache, if it can be had at once.
func (a *ahead) resolve(e markup.BT) {
	form := lookupOfFrame(e)
	here, back := a.find(e.Addr), interval{}
	if form != exactAddress && e.Addr > 0 {
		back = a.find(e.Addr - 1)
	}
	at, form := lookUp(here, back, e.Addr, form)
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

// find is space.find for who may not change the space.
func (a *ahead) find(addr uint64) interval {
	if a.near.mod == nil || addr < a.near.start || addr > a.near.end {
		a.near = a.space.covering(addr)
	}
	return a.near
}
