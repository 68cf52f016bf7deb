package filter

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/marks"
	"github.com/symfilter/symfilter/markup"
)

// An ahead looks up frames on other processors before the Filter reaches them. Its workers begin at
// the end of a block, or of the held lines, and work backwards until they meet the Filter. The
// Filter finds their answers in the Cache. Workers ask only questions that need not wait for a
// file. A question of the Filter waits for at most one worker's question about the same module.
type ahead struct {
	opt     *Options
	cached  *Cache
	filter  *asker // the Filter's asker
	workers []*aheadWorker

	block []byte // the Filter's current block; nil if no frames may be resolved ahead
	// frames in held lines; if there are any, workers resolve these frames and ignore the block
	frames []heldFrame
	begun  bool // workers were started for the block and the current address space
	fresh  int  // new answers by the Filter in the block before the ahead began

	left  atomic.Int64 // bytes of block, or held frames, that no worker has taken yet
	part  int64        // bytes that a worker takes at a time
	at    atomic.Int64 // offset in block, or number of the held line, that the Filter has reached
	size  atomic.Int64 // bytes of answers that workers have put into the Cache for the block
	stop  atomic.Bool
	ended sync.WaitGroup

	faults int64 // symbolReaders.Faults when the workers started; see check

	before int // new answers before the current block, by the Filter and the workers
}

// An aheadWorker is one goroutine of an ahead. Its answers are private until flush puts them into
// the Cache.
type aheadWorker struct {
	asker
	of    *ahead
	space *space
	near  interval // the last interval found

	found generation // answers that are not in the Cache yet
	keys  []cacheKey // keys of found, in its order
	given []cacheKey // keys of the worker's answers for the block that are in the Cache; see check
	size  int64      // bytes of found
	since time.Time  // time of the last flush
	marks []int      // offsets in the block of the elements in the current part
}

const (
	// bytes after which the Filter stores its offset again; a store for each line would add 5 % to
	// a frame's time
	aheadStep  = 1 << 10
	aheadPart  = 8 << 10 // maximum bytes that a worker takes at a time
	aheadLeast = 256     // minimum bytes: about five frames
	// new answers in a block that start the ahead for the next block
	aheadNew = 256
	// new answers that start the ahead for the rest of a block
	aheadFresh = 8
	// new frames in held lines that start the ahead: each reads debug information for 0.1 to 1 ms
	aheadHeld = 4
	// time of a single new answer that also starts the ahead for the rest of a block
	aheadSlow = 100 * time.Microsecond
	// time after which a worker flushes even a few answers
	aheadSoon = 500 * time.Microsecond
	// a worker stops after a part that has at least this many addresses, but no new answer
	aheadVain  = 32
	aheadShare = 4 // a block may take 1/4 of the Cache's budget
	// a flush copies up to this many answers; a larger flush hands its memory over to the Cache
	aheadCopied = 64
	aheadMost   = 4 << 10 // answers after which a worker flushes
)

var errNotAtOnce = errors.New("not known at once")

// lookAhead makes b the block that workers may resolve ahead. It does nothing without a Symbolizer,
// with Patience.Never, if lines have process keys, or if only one goroutine may read a file at
// once. It starts the workers at once if the previous block had at least aheadNew new answers.
func (f *Filter) lookAhead(b []byte) {
	a := f.ahead
	if f.o.Symbolizer == nil || f.o.Patience.Never || f.o.ProcessKey != nil || f.entered || f.o.symbolReaders().Jobs() < 2 {
		return
	}
	if a == nil {
		a = &ahead{opt: &f.o, cached: f.cached, filter: &f.asker}
		f.ahead = a
	}
	n := f.rendered
	for _, w := range a.workers {
		n += w.rendered
	}
	many := n-a.before >= aheadNew
	a.before = n
	a.block, a.begun, a.fresh = b, false, 0
	a.at.Store(0)
	a.size.Store(0)
	if many {
		a.begin(f.space)
	}
}

// noteAnswer counts a new answer of the Filter, which took the given time to find. It starts the
// workers after aheadFresh new answers in a block, or after one that took at least aheadSlow.
func (a *ahead) noteAnswer(took time.Duration, s *space) {
	if a.fresh++; a.fresh >= aheadFresh || took >= aheadSlow {
		a.begin(s)
	}
}

func (a *ahead) begin(of *space) {
	rest := int64(len(a.block)) - a.at.Load()
	if rest < aheadLeast {
		return
	}
	s := a.opt.symbolReaders()
	n := s.Jobs() - 1
	a.part = max(aheadLeast, min(aheadPart, rest/int64(4*n)))
	a.start(min(n, int((rest+a.part-1)/a.part)), int64(len(a.block)), of)
}

// start starts n workers. left is the number of bytes, or of held frames, that they share.
func (a *ahead) start(n int, left int64, of *space) {
	a.begun, a.faults = true, a.opt.symbolReaders().Faults()
	a.left.Store(left)
	a.stop.Store(false)
	for len(a.workers) < n {
		w := &aheadWorker{of: a, found: newPortion()}
		r := &a.filter.renderer
		w.opt, w.cached, w.aheadOf = a.opt, a.cached, a.filter
		w.renderer = renderer{paths: r.paths, own: r.own, short: r.short, sources: r.sources}
		a.workers = append(a.workers, w)
	}
	for _, w := range a.workers[:n] {
		w.space, w.near, w.given = of, interval{}, w.given[:0]
		a.ended.Go(w.run)
	}
}

// A heldFrame is a located frame in a held line, whose answer is not known yet.
type heldFrame struct {
	line int64 // number of the held line, from 1
	mod  *module
	rel  uint64
}

// addHeld adds h, unless the Cache may have its answer, or h is the frame added last, as in a
// recursion.
func (a *ahead) addHeld(h heldFrame) {
	if n := len(a.frames); n > 0 && a.frames[n-1].mod == h.mod && a.frames[n-1].rel == h.rel {
		return
	}
	if !a.cached.mayHave(a.filter.key(h.mod, h.rel, exactAddress)) {
		a.frames = append(a.frames, h)
	}
}

// beginHeld starts workers for the added frames if there are at least aheadHeld of these frames.
// The returned function stops the workers.
func (a *ahead) beginHeld(s *space) (end func()) {
	if len(a.frames) < aheadHeld {
		a.frames = a.frames[:0]
		return func() {}
	}
	offset := a.at.Swap(0)
	a.start(min(a.opt.symbolReaders().Jobs(), len(a.frames))-1, int64(len(a.frames)), s)
	return func() {
		a.end()
		a.at.Store(offset)
	}
}

// reach stores the number of the held line that the Filter prints, from 1: workers stop at this
// line.
func (a *ahead) reach(line int) {
	if a != nil && len(a.frames) > 0 {
		a.at.Store(int64(line))
	}
}

// check ends the look-ahead for the block if the symbolizer had a fault since the workers started.
// It drops the workers' unused answers from the Cache, since the symbolizer may now return others.
func (a *ahead) check() {
	if !a.begun || a.opt.symbolReaders().Faults() == a.faults {
		return
	}
	a.end()
	for _, w := range a.workers {
		a.cached.withdraw(w.given)
		w.given = w.given[:0]
	}
	a.block = nil // resolve no more frames of this block ahead
}

func (a *ahead) end() {
	a.stop.Store(true)
	a.ended.Wait()
	a.begun, a.fresh, a.frames = false, 0, a.frames[:0]
}

// changeSpace returns the current address space, so that the caller can change it. It first stops
// the workers, which read the space.
func changeSpace(f *lineFilter) *space {
	f.endAhead()
	return &f.process.space
}

func (f *lineFilter) endAhead() {
	if a := f.ahead; a != nil && a.begun {
		a.end()
	}
}

func (f *lineFilter) endBlock() {
	f.endAhead()
	if f.ahead != nil {
		f.ahead.block = nil
	}
}

// met reports whether a worker must stop at this offset in the block, or at the held line with this
// number.
func (a *ahead) met(at int64) bool {
	return a.stop.Load() || a.at.Load() >= at || a.size.Load() > a.cached.budget/aheadShare
}

func (w *aheadWorker) run() {
	defer func() {
		if recover() != nil { // the Filter meets the fault, too, and reports it
			w.of.stop.Store(true)
			w.found, w.keys, w.size = newPortion(), nil, 0
			return
		}
		w.flush()
	}()
	w.since = time.Now()
	a, b := w.of, w.of.block
	if len(a.frames) > 0 {
		w.runHeld()
		return
	}
	for {
		hi := a.left.Add(-a.part) + a.part
		if hi <= 0 || a.met(hi) {
			return
		}
		w.marks = w.marks[:0]
		for at, end := int(max(0, hi-a.part)), int(hi); at < end; {
			n, _ := marks.FindOpen(b[at:end])
			if at += n; at < end {
				w.marks = append(w.marks, at)
				at += len(markupOpen)
			}
		}
		asked, before := 0, w.rendered
		for i := len(w.marks) - 1; i >= 0; i-- {
			at := w.marks[i]
			e, _, n := markup.LeadingBT(b[at:])
			if n == 0 {
				continue
			}
			if a.met(int64(at)) {
				return
			}
			asked++
			w.resolve(&frameFields{e.Frame, e.Addr, e.Kind})
		}
		if asked >= aheadVain && w.rendered == before {
			return
		}
	}
}

// runHeld resolves the frames in held lines, from the last one backwards, until it meets the
// Filter. It skips frames whose lookup could fail in a debug file: the failure would cost the
// answers of earlier frames, which the Filter has not reached yet.
func (w *aheadWorker) runHeld() {
	w.ordered = true
	defer func() { w.ordered = false }()
	for a := w.of; ; {
		i := a.left.Add(-1)
		if i < 0 || a.met(a.frames[i].line) {
			return
		}
		h := &a.frames[i]
		w.answer(h.mod, h.rel, exactAddress)
	}
}

// resolve adds the answer for a frame to w.found if the symbolizer need not wait for a file.
func (w *aheadWorker) resolve(e *frameFields) {
	form := lookupOfFrame(e)
	here, back := w.find(e.addr), interval{}
	if form != exactAddress && e.addr > 0 {
		back = w.find(e.addr - 1)
	}
	at, form := chooseAddress(here, back, e.addr, form)
	if at.mod != nil {
		w.answer(at.mod, at.rel, form)
	}
}

// answer adds the answer for the address rel of m to w.found. It does nothing if the answer is
// known, or if the symbolizer would have to wait for a file.
func (w *aheadWorker) answer(m *module, rel uint64, form lookup) {
	key := w.key(m, rel, form)
	if _, ok := w.found.frames[key]; ok || w.cached.mayHave(key) {
		return
	}
	if text, ok, _ := w.render(m, rel, form); ok {
		w.found.put(key, &text)
		w.found.answers[len(w.found.answers)-1].ahead = true
		w.keys = append(w.keys, key)
		w.size += text.size()
		if n := len(w.keys); n <= aheadCopied && time.Since(w.since) >= aheadSoon || n >= aheadMost {
			w.flush()
		}
	}
}

// newPortion returns a generation with small pieces of memory: the Cache counts only the used part
// of a piece that it adopts.
func newPortion() generation {
	g := newGeneration(0)
	g.text.piece, g.cuts.piece = 16<<10, 256
	return g
}

func (w *aheadWorker) flush() {
	if len(w.keys) == 0 {
		return
	}
	w.of.size.Add(w.size)
	w.given = append(w.given, w.keys...)
	if len(w.keys) <= aheadCopied {
		w.cached.copyOf(w.keys, &w.found)
		w.found.reset()
	} else {
		w.cached.adopt(w.keys, &w.found, w.size)
		w.found = newPortion()
	}
	w.keys, w.size, w.since = w.keys[:0], 0, time.Now()
}

// find is space.find for a worker, which must not write to the space. It caches the last interval
// in the worker instead.
func (w *aheadWorker) find(addr uint64) interval {
	if w.near.mod == nil || addr < w.near.start || addr > w.near.end {
		w.near = w.space.covering(addr)
	}
	return w.near
}
