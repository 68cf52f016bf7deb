package filter

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// An asker looks up addresses with the symbolizer, and renders the answers.
type asker struct {
	opt      *Options
	cached   *Cache
	patience *report.Patience
	aheadOf  *asker                 // the Filter's asker; nil except in an ahead's worker
	ordered  bool                   // only the Filter may find a fault of a file: see runHeld
	asked    atomic.Pointer[module] // the module of the current or last question
	expired  context.Context        // a context that is done: questions with it do not wait
	// time at which the asker stops waiting for slow work, which it leaves to other goroutines;
	// zero: no bound, and the asker does the work itself
	until    time.Time
	frames   []symbolize.Frame // scratch
	renderer renderer
	rendered int   // number of code addresses answered so far
	early    int64 // questions answered by symbols before the file's debug information was ready
}

func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// key returns the Cache's key for the address rel of m.
func (r *asker) key(m *module, rel uint64, form lookup) cacheKey {
	n := m.cached.Load()
	if n == 0 {
		n = r.cached.module(m.binary.Value())
		m.cached.Store(n)
	}
	return cacheKey{rel, n, form}
}

// render looks up the address rel of m, and renders the answer. Without an answer, err is the
// reason; err is nil if no symbol covers the address, or if there is no symbolizer. The draft is
// valid until the next call.
func (r *asker) render(m *module, rel uint64, form lookup) (text draft, ok bool, err error) {
	if r.opt.Symbolizer == nil {
		return text, false, nil
	}
	defer r.observe()()
	l := symbolize.Location{ID: m.buildID(), Name: m.asked(), Addr: rel}
	if form == dataAddress || form == wholeVariable {
		v, err := r.askVariable(m, l)
		if err != nil || v.Name == "" {
			return text, false, err
		}
		if plain, ok := report.Unversioned(v.Linkage); ok {
			v.Name = r.opt.Symbolizer.Demangle(plain)
		}
		if form == wholeVariable {
			return r.renderer.whole(v), true, nil
		}
		return r.renderer.variable(v), true, nil
	}
	frames, back, err := r.chooseFrames(m, l, form)
	if err != nil || len(frames) == 0 {
		return text, false, err
	}
	if back {
		l.Addr--
	}
	r.rendered++
	return r.renderer.frames(frames, m, l.Addr, back), true, nil
}

// observe starts to measure a question. The returned function passes the duration to
// Patience.Asked.
func (r *asker) observe() (end func()) {
	if r.opt.Patience.Asked == nil || r.aheadOf != nil {
		return func() {}
	}
	began := time.Now()
	return func() { r.opt.Patience.Asked(time.Since(began)) }
}

// chooseFrames returns the frames at l or at the byte before it, as form requires. back is true if
// it chose the byte before l.
func (r *asker) chooseFrames(m *module, l symbolize.Location, form lookup) (frames []symbolize.Frame, back bool, err error) {
	if form == exactAddress {
		frames, err = r.askFrames(m, l)
		return frames, false, err
	}
	prior := l
	prior.Addr--
	frames, err = r.askFrames(m, prior)
	if err != nil {
		if r.never() && errors.Is(err, symbolize.ErrPending) {
			r.codeAtOnce(l) // both answers are then known when the address occurs again
		}
		return nil, false, err
	}
	line := len(frames) > 0 && frames[0].Line != 0
	if form == unspecified && line {
		return frames, true, nil
	}
	frames = slices.Clone(frames)
	here, err := r.askFrames(m, l)
	switch {
	case err == errNotAtOnce: // a worker leaves the choice to the Filter
		return nil, false, err
	case err != nil || len(here) == 0:
		return frames, true, nil
	case len(frames) == 0:
		return here, false, nil
	case form == unspecifiedFirst && (here[0].Line != 0 || !line):
		return here, false, nil
	case form == unspecified && here[0].Line != 0 && here[len(here)-1].Func == frames[len(frames)-1].Func:
		return here, false, nil
	}
	return frames, true, nil
}

// askFrames returns the frames at l, and removes the version from a symbol's name. The frames are
// valid until the next call.
func (r *asker) askFrames(m *module, l symbolize.Location) ([]symbolize.Frame, error) {
	frames, err := r.askCode(m, l)
	r.frames = frames[:0]
	if n := len(frames); n > 0 && frames[n-1].FromSymbol {
		if plain, ok := report.Unversioned(frames[n-1].Linkage); ok {
			frames[n-1].Func = r.opt.Symbolizer.Demangle(plain)
		}
	}
	return frames, err
}

// askCode returns the frames at l. It waits for a debug file while the patience lasts, but never in
// a worker of the ahead.
func (r *asker) askCode(m *module, l symbolize.Location) (frames []symbolize.Frame, err error) {
	if r.aheadOf != nil {
		s := r.opt.symbolsAhead()
		atOnce := s.TryCode
		if r.ordered || m == r.aheadOf.asked.Load() {
			atOnce = s.BesideCode
		}
		frames, ok := atOnce(r.frames[:0], l)
		if !ok {
			err = errNotAtOnce
		}
		return frames, err
	}
	if r.never() {
		return r.codeAtOnce(l)
	}
	r.asked.Store(m)
	err = r.question(m, l, func(ctx, within context.Context) (err error) {
		frames, err = r.opt.symbols().Code(ctx, within, r.frames[:0], l)
		return err
	})
	if len(frames) > 0 && errors.Is(err, symbolize.ErrPending) {
		r.early++
		err = nil // frames from symbols are the best answer for now; they expire
	}
	return frames, err
}

// askLayout returns the segments of m's file; fixed is set if the file is loaded at its link
// address. It waits for the file while the patience lasts.
func (r *asker) askLayout(m *module) (segments []object.Segment, fixed bool, err error) {
	if r.never() {
		return nil, false, symbolize.ErrPending
	}
	defer r.observe()()
	at := symbolize.Location{ID: m.buildID(), Name: m.asked()}
	err = r.question(m, at, func(ctx, within context.Context) (err error) {
		segments, fixed, err = r.opt.symbolFiles().Layout(ctx, within, at.ID, at.Name)
		return err
	})
	return segments, fixed, err
}

// examine calls do with the file of m if the symbolizer has found it.
func (r *asker) examine(m *module, do judge.Examination) {
	// an error only means that do was not called; callers of Image.Visit allow for that
	within, end := r.within()
	defer end()
	_ = r.opt.symbolFiles().Examine(r.expired, within, m.buildID(), m.asked(), do)
}

// never reports whether only other goroutines may open and read files: see Patience.Never and
// Lines.Until.
func (r *asker) never() bool {
	return r.opt.Patience.Never || !r.until.IsZero() && !time.Now().Before(r.until)
}

// within returns a context that ends at r.until, or nil without a bound. The caller must call end.
func (r *asker) within() (ctx context.Context, end func()) {
	if r.until.IsZero() {
		return nil, func() {}
	}
	return context.WithDeadline(context.Background(), r.until)
}

// question first calls ask without waiting for the file of m. If ask returns ErrPending, question
// calls it again when the file arrives or the patience ends.
func (r *asker) question(m *module, l symbolize.Location, ask func(ctx, within context.Context) error) (err error) {
	within, end := r.within()
	defer end()
	r.awaitFile(m)
	if err = ask(r.expired, within); !errors.Is(err, symbolize.ErrPending) {
		r.patience.Settle(m.awaited)
		return err
	}
	r.patience.Await(m.awaited, l, func(ctx context.Context) error {
		err = ask(ctx, within)
		return err
	})
	return err
}

// codeAtOnce is askCode without waiting. An unknown answer is looked up in the background.
func (r *asker) codeAtOnce(l symbolize.Location) (frames []symbolize.Frame, err error) {
	frames, err = r.opt.Symbolizer.Ask(r.expired, r.frames[:0], l, symbolize.Policy{Wait: symbolize.Now})
	if len(frames) > 0 && errors.Is(err, symbolize.ErrPending) {
		err = nil // frames from symbols are the best answer for now; they expire
	}
	return frames, err
}

func (r *asker) prefetch(m *module) {
	switch s := r.opt.Symbolizer; {
	case s == nil:
	case r.never() || !r.until.IsZero():
		r.opt.symbolFiles().Search(m.buildID(), m.asked())
	default:
		s.Prefetch(m.buildID(), m.asked())
	}
}

// awaitFile starts the time that lines may wait for m's debug file, unless it has started before.
func (r *asker) awaitFile(m *module) {
	if m.awaited == nil {
		m.awaited = r.patience.Name(m.buildID(), time.Now())
	}
}

func (r *asker) askVariable(m *module, l symbolize.Location) (symbolize.Variable, error) {
	if r.never() {
		v, err := r.opt.Symbolizer.AskData(r.expired, l, symbolize.Policy{Wait: symbolize.Now})
		if v.Name != "" && errors.Is(err, symbolize.ErrPending) {
			err = nil
		}
		return v, err
	}
	var v symbolize.Variable
	err := r.question(m, l, func(ctx, within context.Context) (err error) {
		v, err = r.opt.symbols().Data(ctx, within, l)
		return err
	})
	if v.Name != "" && errors.Is(err, symbolize.ErrPending) {
		err = nil
	}
	return v, err
}
