package symbolize

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// bounds of the questions that are answered in the background
const (
	maxErrands = 1024 // waiting questions, about 100 KiB; a crash asks about a hundred
	maxParked  = 64   // waiting questions about one module that is being searched for or inflated
	maxWarmers = 2    // goroutines that run errands; equals maxInflating
	// answers are kept in two generations, each of at most 1/128 of the budget: at 512 MiB about
	// 15,000 frames
	warmShare = 128
	warmCost  = 192 // bytes of an answer or a frame, without its strings
)

// A warmer looks up answers in the background for callers that must not wait, and keeps them for
// questions with Now.
type warmer struct {
	s *Symbolizer

	mu       sync.RWMutex
	queue    []errand
	queued   map[errand]bool // the errands in queue
	working  int             // goroutines
	young    map[errandKey]warmAnswer
	old      map[errandKey]warmAnswer // the generation before young; dropped next
	size     int64                    // bytes of young
	oldSize  int64
	mostSize int64           // size of young at which it becomes old
	expired  context.Context // always done: questions with it do not wait
	beside   chan struct{}   // a token for each running question of askWithin
}

// An errand is a question to be asked in the background.
type errand struct {
	errandKey
	name string // the module's name
}

type errandKey struct {
	of   key
	addr uint64
	kind errandKind
}

type errandKind uint8

const (
	codeErrand   errandKind = iota
	dataErrand              // about a data address
	searchErrand            // starts a search for a file
	ledgerErrand            // counts the names that an index has copied
)

// A warmAnswer is the answer to an errand about code or data. It is immutable.
type warmAnswer struct {
	frames   []Frame
	variable Variable
	err      error     // nil or ErrNoSymbol
	until    time.Time // when to ask again; zero means never
}

func (w *warmer) init(s *Symbolizer) {
	w.s = s
	w.queued = make(map[errand]bool)
	w.young = make(map[errandKey]warmAnswer)
	w.mostSize = s.o.MaxMemory / warmShare
	w.beside = make(chan struct{}, maxBeside)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.expired = ctx
}

// search starts to look for a module's file in the background, as Prefetch does, and never waits.
// It returns false if the queue is full.
func (w *warmer) search(id buildid.ID, name string) bool {
	return w.send(newErrand(searchErrand, Location{ID: id, Name: name}))
}

func newErrand(kind errandKind, l Location) errand {
	return errand{errandKey{keyOf(l.ID, l.Name), l.Addr, kind}, clipName(l.Name)}
}

// known returns the answer that the warmer has kept. Without an answer, it returns the error of
// refusal. If the answer has expired, it also returns ErrPending.
func (w *warmer) known(kind errandKind, l Location) (a warmAnswer, err error) {
	k := errandKey{keyOf(l.ID, l.Name), l.Addr, kind}
	w.mu.RLock()
	a, ok := w.young[k]
	if !ok {
		a, ok = w.old[k]
	}
	w.mu.RUnlock()
	if !ok {
		return a, w.refusal(l)
	}
	if !a.until.IsZero() && !time.Now().Before(a.until) {
		return a, ErrPending
	}
	return a, a.err
}

// refusal returns the error for a location without a kept answer: the error of its module, or
// ErrPending. It starts a search for the module's file if that is due.
func (w *warmer) refusal(l Location) error {
	e, err := w.s.cache.entry(l.ID, l.Name)
	if err != nil {
		return err
	}
	if !e.mu.TryLock() {
		return ErrPending
	}
	defer e.mu.Unlock()
	if e.state == answering {
		return ErrPending
	}
	if _, err := w.s.start(e, l.Name); err != nil && err != errBusy {
		return err
	}
	return ErrPending
}

// send queues an errand and reports whether it is in the queue. It drops the errand if the queue is
// full, and may drop it after Close.
func (w *warmer) send(t errand) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued[t] {
		return true
	}
	if len(w.queue) >= maxErrands {
		return false
	}
	if w.working < maxWarmers {
		w.s.cache.mu.RLock()
		defer w.s.cache.mu.RUnlock()
		if w.s.cache.closed {
			return false
		}
		w.working++
		w.s.tasks.Go(w.work)
	}
	w.queued[t] = true
	w.queue = append(w.queue, t)
	return true
}

// work runs queued errands until none is left or the Symbolizer is closed.
func (w *warmer) work() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || w.s.ctx.Err() != nil {
			w.working--
			w.mu.Unlock()
			return
		}
		t := w.queue[0]
		if w.queue = w.queue[1:]; len(w.queue) == 0 {
			w.queue = nil
		}
		delete(w.queued, t)
		w.mu.Unlock()
		w.run(t)
	}
}

func (w *warmer) run(t errand) {
	l := Location{ID: t.of.id, Name: t.name, Addr: t.addr}
	switch t.kind {
	case searchErrand:
		w.s.Prefetch(l.ID, l.Name)
		return
	case ledgerErrand:
		if e := w.s.cache.existing(l.ID, l.Name); e != nil {
			e.mu.Lock()
			if x := e.index.Load(); x != nil {
				x.grown.Store(false)
			}
			w.s.cache.account(e)
			e.mu.Unlock()
			w.s.cache.relieve()
		}
		return
	}
	a := w.ask(t.kind, l)
	if errors.Is(a.err, ErrPending) && !w.park(t, a.empty()) {
		a = w.ask(t.kind, l) // the task has ended meanwhile, or has found a file
	}
	if errors.Is(a.err, ErrPending) && !a.empty() {
		// keep the provisional answer, which was found before the search ended, but let it expire
		// at once
		a.err, a.until = nil, time.Now()
	}
	if a.err == nil || a.err == ErrNoSymbol {
		w.s.cache.memory.heap.Add(w.keep(t.errandKey, a))
		w.s.cache.relieve()
	}
}

// ask looks up the answer at l without waiting for a search or an inflation.
func (w *warmer) ask(kind errandKind, l Location) (a warmAnswer) {
	if kind == dataErrand {
		a.variable, a.until, a.err = w.s.dataUntil(w.expired, l)
	} else {
		a.frames, a.until, a.err = w.s.codeUntil(w.expired, nil, l)
	}
	return a
}

// park keeps an errand until the task of its module ends, or begins to ask servers, which may hang.
// If maxParked errands wait already, it drops the errand. It returns false if the errand should be
// asked again at once: if there is no task, or if the module now has a file and the errand has no
// answer yet.
func (w *warmer) park(t errand, empty bool) bool {
	e := w.s.cache.existing(t.of.id, t.name)
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.task == nil {
		return false
	}
	if len(e.parked) < maxParked && !slices.Contains(e.parked, t) {
		e.parked = append(e.parked, t)
	}
	return !empty || e.state != answering
}

// unpark queues the questions that waited for e's task; e.mu is held.
func (w *warmer) unpark(e *entry) {
	for _, t := range e.parked {
		w.send(t)
	}
	e.parked = nil
}

// keep stores an answer, and returns the growth of all answers in bytes.
func (w *warmer) keep(k errandKey, a warmAnswer) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.size + w.oldSize
	if old, ok := w.young[k]; ok {
		w.size -= old.cost(k)
	}
	if w.size += a.cost(k); w.size > w.mostSize {
		w.old, w.young = w.young, make(map[errandKey]warmAnswer)
		w.oldSize, w.size = w.size-a.cost(k), a.cost(k)
	}
	w.young[k] = a
	return w.size + w.oldSize - before
}

func (a *warmAnswer) empty() bool { return len(a.frames) == 0 && a.variable.Name == "" }

func (a *warmAnswer) cost(k errandKey) int64 {
	n := int64(warmCost + len(k.of.name) + len(a.variable.Name) + len(a.variable.Linkage) + len(a.variable.Member))
	for i := range a.frames {
		f := &a.frames[i]
		n += int64(warmCost + len(f.Func) + len(f.Linkage) + len(f.File) + len(f.SymbolFile))
	}
	return n
}
