package symbolize

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/pagefault"
)

// maxBeside bounds the questions of all Bounded that run at a time. An answer that nobody waits for
// any longer takes its place until it ends, and with it some 10 KiB.
const maxBeside = 256

// Bounded asks a Symbolizer questions that end with a Context, whatever the files cost. What may take
// long, which is opening a file, inflating and parsing it, and waiting for another question about it,
// is done by other goroutines. A question that they do not answer in time fails with ErrPending, and
// is asked again in the background: see [Symbolizer.Warm]. While 256 questions run, others fail so at
// once. With a nil Context, questions are those of the Symbolizer.
type Bounded struct {
	S       *Symbolizer
	Context context.Context
}

// Code is [Symbolizer.Code]. It waits for a search until ctx or b.Context is done.
func (b Bounded) Code(ctx context.Context, dst []Frame, l Location) ([]Frame, error) {
	if b.Context == nil {
		return b.S.Code(ctx, dst, l)
	}
	frames, err := b.S.AtOnce(dst, l)
	if !errors.Is(err, ErrPending) {
		return frames, err
	}
	type answer struct {
		frames []Frame
		err    error
	}
	a, ok := ask(b, ctx, func(ctx context.Context) (a answer) {
		a.frames, a.err = b.S.Code(ctx, nil, l)
		return a
	})
	if !ok {
		b.S.Warm(l)
		return frames, ErrPending
	}
	return append(dst, a.frames...), a.err
}

// Data is [Symbolizer.Data] as Code is Symbolizer.Code.
func (b Bounded) Data(ctx context.Context, l Location) (Variable, error) {
	if b.Context == nil {
		return b.S.Data(ctx, l)
	}
	v, err := b.S.DataAtOnce(l)
	if !errors.Is(err, ErrPending) {
		return v, err
	}
	type answer struct {
		v   Variable
		err error
	}
	a, ok := ask(b, ctx, func(ctx context.Context) (a answer) {
		a.v, a.err = b.S.Data(ctx, l)
		return a
	})
	if !ok {
		b.S.WarmData(l)
		return v, ErrPending
	}
	return a.v, a.err
}

// Layout is [LayoutOf] as Code is Symbolizer.Code.
func (b Bounded) Layout(ctx context.Context, id buildid.ID, name string) (Layout, error) {
	if b.Context == nil {
		return LayoutOf(ctx, b.S, id, name)
	}
	type answer struct {
		l   Layout
		err error
	}
	a, ok := ask(b, ctx, func(ctx context.Context) (a answer) {
		a.l, a.err = LayoutOf(ctx, b.S, id, name)
		return a
	})
	if !ok {
		b.S.WarmFile(id, name)
		return Layout{}, ErrPending
	}
	return a.l, a.err
}

// Examine is [Examine] as Code is Symbolizer.Code. An examination that has begun is waited for.
func (b Bounded) Examine(ctx context.Context, id buildid.ID, name string, examine func(*object.File)) error {
	if b.Context == nil {
		return Examine(ctx, b.S, id, name, examine)
	}
	var taken atomic.Bool // by the examination, or by the caller, who has left
	ended := make(chan any, 1)
	err, ok := ask(b, ctx, func(ctx context.Context) error {
		return Examine(ctx, b.S, id, name, func(obj *object.File) {
			if taken.Swap(true) {
				return
			}
			defer func() {
				r := recover()
				if pagefault.Is(r) {
					ended <- nil
					panic(r) // Examine has the error for it
				}
				ended <- r // a panic is that of the caller, who expects it
			}()
			examine(obj)
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

// ask has do called by another goroutine, with a context that ends with ctx and b.Context. It reports
// whether do has ended before b.Context was done.
func ask[T any](b Bounded, ctx context.Context, do func(context.Context) T) (answer T, ok bool) {
	w := &b.S.warmer
	if b.Context.Err() != nil {
		return answer, false
	}
	select {
	case w.beside <- struct{}{}:
	default:
		return answer, false
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.Context, cancel)
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
	case <-b.Context.Done():
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
