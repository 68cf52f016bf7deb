package symbolize

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/pagefault"
)

// maxBeside bounds the questions of codeWithin and its like that run at a time. An answer that nobody waits for
// any longer takes its place until it ends, and with it some 10 KiB.
const maxBeside = 256

// codeWithin is code. If within is not nil, the question ends with it, whatever the file costs. What
// may take long, which is opening a file, inflating and parsing it, and waiting for another question
// about it, is done by another goroutine then. A question that is not answered in time fails with
// ErrPending, and is asked again in the background. While maxBeside questions run, others fail so at
// once.
func (s *Symbolizer) codeWithin(ctx, within context.Context, dst []Frame, l Location) ([]Frame, error) {
	if within == nil {
		return s.code(ctx, dst, l)
	}
	frames, err := s.known(dst, l)
	if !errors.Is(err, ErrPending) {
		return frames, err
	}
	type answer struct {
		frames []Frame
		err    error
	}
	a, ok := askWithin(s, ctx, within, func(ctx context.Context) (a answer) {
		a.frames, a.err = s.code(ctx, nil, l)
		return a
	})
	if !ok {
		s.warmer.send(newErrand(codeErrand, l))
		return frames, ErrPending
	}
	return append(dst, a.frames...), a.err
}

// dataWithin is data as codeWithin is code.
func (s *Symbolizer) dataWithin(ctx, within context.Context, l Location) (Variable, error) {
	if within == nil {
		return s.data(ctx, l)
	}
	v, err := s.knownData(l)
	if !errors.Is(err, ErrPending) {
		return v, err
	}
	type answer struct {
		v   Variable
		err error
	}
	a, ok := askWithin(s, ctx, within, func(ctx context.Context) (a answer) {
		a.v, a.err = s.data(ctx, l)
		return a
	})
	if !ok {
		s.warmer.send(newErrand(dataErrand, l))
		return v, ErrPending
	}
	return a.v, a.err
}

// layoutWithin is layout as codeWithin is code.
func (s *Symbolizer) layoutWithin(ctx, within context.Context, id buildid.ID, name string) ([]object.Segment, bool, error) {
	if within == nil {
		return s.layout(ctx, id, name)
	}
	type answer struct {
		segments []object.Segment
		fixed    bool
		err      error
	}
	a, ok := askWithin(s, ctx, within, func(ctx context.Context) (a answer) {
		a.segments, a.fixed, a.err = s.layout(ctx, id, name)
		return a
	})
	if !ok {
		s.warmer.search(id, name)
		return nil, false, ErrPending
	}
	return a.segments, a.fixed, a.err
}

// examineWithin is examine as codeWithin is code. An examination that has begun is waited for.
func (s *Symbolizer) examineWithin(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error {
	if within == nil {
		return s.examine(ctx, id, name, do)
	}
	var taken atomic.Bool // by the examination, or by the caller, who has left
	ended := make(chan any, 1)
	err, ok := askWithin(s, ctx, within, func(ctx context.Context) error {
		return s.examine(ctx, id, name, func(obj *object.File) {
			if taken.Swap(true) {
				return
			}
			defer func() {
				r := recover()
				if pagefault.Is(r) {
					ended <- nil
					panic(r) // examine has the error for it
				}
				ended <- r // a panic is that of the caller, who expects it
			}()
			do(obj)
		})
	})
	if !ok {
		err = ErrPending
	}
	if taken.Swap(true) {
		if r := <-ended; r != nil {
			panic(r)
		}
		if !ok {
			err = nil
		}
	}
	return err
}

// askWithin has do called by another goroutine, with a context that ends with ctx and within. It
// reports whether do has ended before within was done.
func askWithin[T any](s *Symbolizer, ctx, within context.Context, do func(context.Context) T) (answer T, ok bool) {
	w := &s.warmer
	if within.Err() != nil {
		return answer, false
	}
	select {
	case w.beside <- struct{}{}:
	default:
		return answer, false
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(within, cancel)
	done := make(chan T, 1)
	if !w.spawn(func() {
		defer cancel()
		defer stop()
		answer := do(ctx)
		<-w.beside
		done <- answer
	}) {
		<-w.beside
		stop()
		cancel()
		return do(ctx), true // ErrClosed
	}
	select {
	case answer = <-done:
		return answer, true
	case <-within.Done():
		return answer, false
	}
}

// spawn has do called by a goroutine that Close waits for. It reports false if s is closed.
func (w *warmer) spawn(do func()) bool {
	w.s.cache.mu.RLock()
	defer w.s.cache.mu.RUnlock()
	if w.s.cache.closed {
		return false
	}
	w.s.tasks.Go(do)
	return true
}

// lock locks e.mu, which a question may hold for long, unless ctx is done first.
func (w *warmer) lock(ctx context.Context, e *entry) bool {
	if e.mu.TryLock() {
		return true
	}
	var taken atomic.Bool
	locked := make(chan struct{})
	if !w.spawn(func() {
		if e.mu.Lock(); taken.Swap(true) {
			e.mu.Unlock()
			return
		}
		close(locked)
	}) {
		return false
	}
	select {
	case <-locked:
		return true
	case <-ctx.Done():
		if taken.Swap(true) {
			<-locked
			return true
		}
		return false
	}
}
