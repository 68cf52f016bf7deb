package symbolize

import (
	"context"
	"errors"
)

// A Policy sets how long a question may wait.
type Policy struct {
	Wait Wait
}

// A Wait selects what a question waits for. If the best answer takes longer, the question fails
// with ErrPending and returns the answer so far. A later question may get the best answer.
type Wait uint8

const (
	// Servers waits for the whole search for the module's file, until the context is done.
	Servers Wait = iota
	// Local waits while this machine is searched, until the context is done. Servers are queried in
	// the background.
	Local
	// Now waits for nothing: it opens no file, inflates and parses nothing, and does not wait for
	// other questions about the file. It answers from the index of an open module and from the
	// answers found in the background since the first question. Other questions are queued for the
	// background. The queue holds at most 1,024 locations, and at most 64 of one module while its
	// file is searched for or inflated.
	Now
)

// Ask appends the frames at a code location to dst, innermost first. If nothing is known there, it
// returns dst unchanged. Errors other than ErrPending are a *NotFoundError, a *FaultError or
// ErrClosed. The strings are copies. Answers from a file without debug information expire: see
// [Frame.Until].
func (s *Symbolizer) Ask(ctx context.Context, dst []Frame, l Location, p Policy) ([]Frame, error) {
	switch p.Wait {
	case Now:
		return s.askNow(dst, l)
	case Local:
		frames, err := s.code(s.warmer.expired, dst, l)
		if !errors.Is(err, ErrPending) {
			return frames, err
		}
		s.awaitLocal(ctx, l)
		return s.code(s.warmer.expired, dst, l)
	}
	return s.code(ctx, dst, l)
}

// AskData returns the variable that contains a location, or the function. If nothing is known
// there, it fails with ErrNoSymbol; other errors are the same as for Ask. A symbol ends after its
// size; a symbol without a size names only its own address, unless Options.Reaching is set.
func (s *Symbolizer) AskData(ctx context.Context, l Location, p Policy) (Variable, error) {
	switch p.Wait {
	case Now:
		return s.askDataNow(l)
	case Local:
		v, err := s.data(s.warmer.expired, l)
		if !errors.Is(err, ErrPending) {
			return v, err
		}
		s.awaitLocal(ctx, l)
		return s.data(s.warmer.expired, l)
	}
	return s.data(ctx, l)
}

// code is Ask with Servers.
func (s *Symbolizer) code(ctx context.Context, dst []Frame, l Location) ([]Frame, error) {
	dst, _, err := s.codeUntil(ctx, dst, l)
	return dst, err
}

// data is AskData with Servers.
func (s *Symbolizer) data(ctx context.Context, l Location) (Variable, error) {
	v, _, err := s.dataUntil(ctx, l)
	return v, err
}

// awaitLocal waits for the current task of a location's module. It waits for a search until only
// servers are left to ask, and for an inflation until its end. It starts neither, and returns early
// if ctx is done.
func (s *Symbolizer) awaitLocal(ctx context.Context, l Location) {
	e := s.cache.existing(l.ID, l.Name)
	if e == nil || !s.warmer.lock(ctx, e) {
		return
	}
	t := e.task
	e.mu.Unlock()
	if t == nil {
		return
	}
	select {
	case <-t.local:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

func (s *Symbolizer) askNow(dst []Frame, l Location) ([]Frame, error) {
	frames, err := s.known(dst, l)
	if errors.Is(err, ErrPending) {
		s.warmer.send(newErrand(codeErrand, l))
	}
	return frames, err
}

func (s *Symbolizer) askDataNow(l Location) (Variable, error) {
	v, err := s.knownData(l)
	if errors.Is(err, ErrPending) {
		s.warmer.send(newErrand(dataErrand, l))
	}
	return v, err
}

// known appends the frames at l to dst without opening, inflating or parsing anything, and without
// waiting. It fails with ErrPending if a later answer may be better.
func (s *Symbolizer) known(dst []Frame, l Location) ([]Frame, error) {
	if e := s.cache.existing(l.ID, l.Name); e != nil {
		if x := e.index.Load(); x != nil && s.o.byIndexAlone() {
			frames, ok := x.code(dst, l.Addr)
			if x.grown.Load() {
				s.warmer.send(newErrand(ledgerErrand, Location{ID: l.ID, Name: l.Name}))
			}
			if ok {
				e.used.Store(s.cache.clock.Add(1))
				s.cache.counts.byIndex.Add(1)
				return frames, nil
			}
		}
	}
	a, err := s.warmer.known(codeErrand, l)
	return append(dst, a.frames...), err
}

// knownData is known for the variable at l.
func (s *Symbolizer) knownData(l Location) (Variable, error) {
	a, err := s.warmer.known(dataErrand, l)
	return a.variable, err
}
