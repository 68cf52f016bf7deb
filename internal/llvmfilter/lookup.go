package llvmfilter

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A verdict is an error of a lookup. Its text is LLVM's message.
type verdict string

func (v verdict) Error() string { return string(v) }

// Errors that LLVM reports for an address.
const (
	errNotFound verdict = "could not find build ID"
	errNoObject verdict = "The file was not recognized as a valid object file"
	errBroken   verdict = "" // reported before
)

// code returns the frames at a place, innermost first. They are valid until the next call.
func (f *Filter) code(m *module, at place) ([]symbolize.Frame, error) {
	if frames, ok := f.kept[at]; ok {
		return frames, nil
	}
	final := true
	err := f.ask(m, func(ctx context.Context) (answered bool, err error) {
		f.frames, err = f.o.Symbolizer.Ask(ctx, f.frames[:0], m.location(at), symbolize.Policy{})
		final = err == nil
		return len(f.frames) > 0, err
	})
	if err != nil {
		return nil, err
	}
	if final {
		f.keep(at, f.frames)
	}
	return f.frames, nil
}

// keep caches the frames at a place. If the cache would exceed maxKept bytes, it first drops
// all other frames.
func (f *Filter) keep(at place, frames []symbolize.Frame) {
	size := int(unsafe.Sizeof(at))
	for i := range frames {
		fr := &frames[i]
		size += int(unsafe.Sizeof(*fr)) + len(fr.Func) + len(fr.Linkage) + len(fr.File) + len(fr.SymbolFile)
	}
	if f.kept == nil || f.keptSize+size > maxKept {
		f.kept, f.keptSize = make(map[place][]symbolize.Frame), 0
	}
	f.kept[at] = slices.Clone(frames)
	f.keptSize += size
}

// variable returns the name of the symbol at a place, or unknown.
func (f *Filter) variable(m *module, at place) (string, error) {
	var v symbolize.Variable
	err := f.ask(m, func(ctx context.Context) (answered bool, err error) {
		v, err = f.o.Symbolizer.AskData(ctx, m.location(at), symbolize.Policy{})
		return v.Name != "", err
	})
	return f.name(v.Name, v.Linkage), err
}

func (m *module) location(at place) symbolize.Location {
	return symbolize.Location{ID: at.id, Name: m.name, Addr: at.addr}
}

// ask calls question, a lookup in a module. If the module has no symbol there, ask returns nil.
// Other errors have LLVM's message, except errors about damaged files. If an error about the file
// was reported before, ask returns errBroken, since LLVM then reports nothing.
func (f *Filter) ask(m *module, question func(context.Context) (answered bool, err error)) error {
	if f.o.Symbolizer == nil || m.build.IsZero() {
		return errNotFound
	}
	err := f.within(m, question)
	var fault *symbolize.FaultError
	var unusable *buildid.UnusableError
	switch {
	case err == nil, errors.Is(err, symbolize.ErrNoSymbol):
		return nil
	case errors.As(err, &fault):
		err = fault.Err
	case errors.As(err, &unusable):
		err = errNoObject
	default:
		return errNotFound
	}
	if _, ok := f.broken[m.build]; ok {
		return errBroken
	}
	if f.broken == nil || len(f.broken) >= maxBroken {
		f.broken = make(map[buildid.ID]struct{})
	}
	f.broken[m.build] = struct{}{}
	return err
}

// within calls question, which waits for the module's file. With Options.Wait, only the first call
// for a module waits, at most that long. If question answers from the file found so far, within
// returns no error, even if the search for a better file continues.
func (f *Filter) within(m *module, question func(context.Context) (answered bool, err error)) error {
	ctx := f.o.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if f.o.Wait > 0 {
		answered, err := question(f.now)
		if m.waited || !errors.Is(err, symbolize.ErrPending) {
			return unlessPending(err, answered)
		}
		m.waited = true
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.o.Wait)
		defer cancel()
	}
	answered, err := question(ctx)
	return unlessPending(err, answered)
}

func unlessPending(err error, answered bool) error {
	if answered && errors.Is(err, symbolize.ErrPending) {
		return nil
	}
	return err
}
