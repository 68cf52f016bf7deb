package symbolize

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/pagefault"
)

// maxBeside bounds the running questions with a deadline. An abandoned question keeps its slot, and
// about 10 KiB of memory, until it ends.
const maxBeside = 256

// codeWithin is like code, but also returns when within is done; a nil within sets no limit.
// Another goroutine does everything that may take long: opening, inflating and parsing a file, and
// waiting for other questions about the file. If that goroutine has no answer when within is done,
// codeWithin fails with ErrPending, and asks again in the background. While maxBeside questions
// run, further questions fail with ErrPending at once.
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

// dataWithin is like data, but also returns when within is done: see codeWithin.
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

// layoutWithin is like layout, but also returns when within is done: see codeWithin.
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

// examineWithin is like examine, but also returns when within is done, unless do has begun: see
// codeWithin.
func (s *Symbolizer) examineWithin(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error {
	if within == nil {
		return s.examine(ctx, id, name, do)
	}
	// The first to set taken decides: the examination does so before it calls do, and the caller
	// when it gives up.
	var taken atomic.Bool
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
					panic(r) // examine turns it into an error
				}
				ended <- r // a panic in do is raised again in the caller, which expects it
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

// askWithin calls do in another goroutine. The context of do ends once ctx or within is done. ok
// reports whether do ended before within was done. If within is already done, or if maxBeside
// questions run, askWithin does not call do.
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
		return do(ctx), true // fails with ErrClosed at once
	}
	select {
	case answer = <-done:
		return answer, true
	case <-within.Done():
		return answer, false
	}
}

// spawn calls do in a goroutine that Close waits for. It returns false if the Symbolizer is closed.
func (w *warmer) spawn(do func()) bool {
	w.s.cache.mu.RLock()
	defer w.s.cache.mu.RUnlock()
	if w.s.cache.closed {
		return false
	}
	w.s.tasks.Go(do)
	return true
}

// lock locks e.mu, which a question may hold for long. It returns false if ctx ends first, or if
// the Symbolizer is closed.
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
