package symbolize

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Limits of what is asked in the background.
const (
	maxErrands = 1024 // questions that wait; some 100 KiB. A crash has a hundred
	maxParked  = 64   // questions that wait for the end of one module's search or inflation
	maxWarmers = 2    // goroutines that ask: as many as inflate at a time
	warmShare  = 128  // 1/128 of the budget is a generation of answers: at 512 MiB some 15,000 frames
	warmCost   = 192  // bytes of an answer or a frame, without its strings
)

// A warmer asks questions for callers that must not wait, and keeps the answers for [Symbolizer.AtOnce]
// and [Symbolizer.DataAtOnce].
type warmer struct {
	mu       sync.RWMutex
	queue    []errand
	queued   map[errand]bool // those in queue
	working  int             // goroutines
	young    map[errandKey]warmAnswer
	old      map[errandKey]warmAnswer // those before young; what is used moves to young
	size     int64                    // bytes of young
	oldSize  int64
	expired  context.Context // asks without waiting
	mostSize int64           // bytes of young at which it becomes old
}

// An errand is a question that is asked in the background.
type errand struct {
	errandKey
	name string // of the module
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
	searchErrand            // starts a search
	ledgerErrand            // counts the names that an index has copied
)

// A warmAnswer is the answer to an errand about code or data. It never changes.
type warmAnswer struct {
	frames   []Frame
	variable Variable
	err      error     // nil or ErrNoSymbol
	until    time.Time // when it is asked for again; zero: never
}

func (w *warmer) init(budget int64) {
	w.queued = make(map[errand]bool)
	w.young = make(map[errandKey]warmAnswer)
	w.mostSize = budget / warmShare
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.expired = ctx
}

// Warm has a code location answered in the background, so that AtOnce knows it later: when its file
// is on this machine, after milliseconds; when a server is asked for the file, after the search. At
// most 1,024 locations wait, and 64 for the file of one module; others are not remembered, and Warm
// reports false. It never waits.
func (s *Symbolizer) Warm(l Location) bool { return s.send(newErrand(codeErrand, l)) }

// WarmData is Warm for DataAtOnce.
func (s *Symbolizer) WarmData(l Location) bool { return s.send(newErrand(dataErrand, l)) }

// WarmFile starts to look for a module's file in the background, as Prefetch does, and never waits.
func (s *Symbolizer) WarmFile(id buildid.ID, name string) bool {
	return s.send(newErrand(searchErrand, Location{ID: id, Name: name}))
}

func newErrand(kind errandKind, l Location) errand {
	return errand{errandKey{keyOf(l.ID, l.Name), l.Addr, kind}, clipName(l.Name)}
}

// AtOnce is Code without anything that takes long: it opens no file, inflates and parses nothing, and
// waits for no other question. It answers from the index of a module that is open, and what Warm has
// found out. It fails with ErrPending if that does not have the answer, also with frames that may
// get better; [Symbolizer.Warm] asks for them. Other errors are those of Code.
func (s *Symbolizer) AtOnce(dst []Frame, l Location) ([]Frame, error) {
	if e := s.cache.existing(l.ID, l.Name); e != nil {
		if x := e.index.Load(); x != nil && s.byIndexAlone() {
			frames, ok := x.code(dst, l.Addr)
			if x.grown.Load() {
				s.send(newErrand(ledgerErrand, Location{ID: l.ID, Name: l.Name}))
			}
			if ok {
				e.used.Store(s.cache.clock.Add(1))
				return frames, nil
			}
		}
	}
	a, err := s.warmed(codeErrand, l)
	return append(dst, a.frames...), err
}

// DataAtOnce is Data as AtOnce is Code; [Symbolizer.WarmData] asks for what it does not know.
func (s *Symbolizer) DataAtOnce(l Location) (Variable, error) {
	a, err := s.warmed(dataErrand, l)
	return a.variable, err
}

// warmed returns what the warmer knows; ErrPending if that may get better.
func (s *Symbolizer) warmed(kind errandKind, l Location) (a warmAnswer, err error) {
	k := errandKey{keyOf(l.ID, l.Name), l.Addr, kind}
	w := &s.warmer
	w.mu.RLock()
	a, ok := w.young[k]
	if !ok {
		a, ok = w.old[k]
	}
	w.mu.RUnlock()
	if !ok {
		return a, s.atOnceErr(l)
	}
	if !a.until.IsZero() && !time.Now().Before(a.until) {
		return a, ErrPending
	}
	return a, a.err
}

// atOnceErr returns why nothing is known of a module, and starts a search that is due.
func (s *Symbolizer) atOnceErr(l Location) error {
	e, err := s.cache.entry(l.ID, l.Name)
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
	if _, err := s.start(e, l.Name); err != nil && err != errBusy {
		return err
	}
	return ErrPending
}

// send queues an errand, unless it is queued, or there is no room.
func (s *Symbolizer) send(t errand) bool {
	w := &s.warmer
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued[t] {
		return true
	}
	if len(w.queue) >= maxErrands {
		return false
	}
	if w.working < maxWarmers {
		s.cache.mu.RLock()
		defer s.cache.mu.RUnlock()
		if s.cache.closed {
			return false
		}
		w.working++
		s.tasks.Go(s.runErrands)
	}
	w.queued[t] = true
	w.queue = append(w.queue, t)
	return true
}

// runErrands runs until no errand waits.
func (s *Symbolizer) runErrands() {
	w := &s.warmer
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || s.ctx.Err() != nil {
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
		s.run(t)
	}
}

func (s *Symbolizer) run(t errand) {
	l := Location{ID: t.of.id, Name: t.name, Addr: t.addr}
	switch t.kind {
	case searchErrand:
		s.Prefetch(l.ID, l.Name)
		return
	case ledgerErrand:
		if e := s.cache.existing(l.ID, l.Name); e != nil {
			e.mu.Lock()
			s.cache.account(e)
			e.mu.Unlock()
			s.cache.relieve()
		}
		return
	}
	a := s.ask(t.kind, l)
	if errors.Is(a.err, ErrPending) && !s.park(t) {
		a = s.ask(t.kind, l) // the task that it waited for has ended
	}
	if errors.Is(a.err, ErrPending) && (len(a.frames) > 0 || a.variable.Name != "") {
		a.err, a.until = nil, time.Now() // of a file that was found before the search has ended
	}
	if a.err == nil || a.err == ErrNoSymbol {
		s.cache.memory.heap.Add(s.warmer.keep(t.errandKey, a))
		s.cache.relieve()
	}
}

// ask asks without waiting for a search or inflation.
func (s *Symbolizer) ask(kind errandKind, l Location) (a warmAnswer) {
	if kind == dataErrand {
		a.variable, a.until, a.err = s.variable(s.warmer.expired, l)
	} else {
		a.frames, a.until, a.err = s.code(s.warmer.expired, nil, l)
	}
	return a
}

// park keeps an errand until the task of its module has ended, for which its answer waits. It reports
// false if there is no task.
func (s *Symbolizer) park(t errand) bool {
	e := s.cache.existing(t.of.id, t.name)
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
	return true
}

// unpark has the questions asked that wait for e's task; e.mu is held.
func (s *Symbolizer) unpark(e *entry) {
	for _, t := range e.parked {
		s.send(t)
	}
	e.parked = nil
}

// keep keeps an answer, and returns by how many bytes all have grown.
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

func (a *warmAnswer) cost(k errandKey) int64 {
	n := int64(warmCost + len(k.of.name) + len(a.variable.Name) + len(a.variable.Linkage) + len(a.variable.Member))
	for i := range a.frames {
		f := &a.frames[i]
		n += int64(warmCost + len(f.Func) + len(f.Linkage) + len(f.File) + len(f.SymbolFile))
	}
	return n
}
