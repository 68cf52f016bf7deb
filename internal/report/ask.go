package report

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/symbolize"
)

// An Asker looks up addresses in Objects. One Patience bounds the waits of all lookups.
type Asker struct {
	o        *Options
	patience *Patience
	expired  context.Context // a context that has ended, for lookups that must not wait
}

// An Answer is the result of the lookup of an address.
type Answer struct {
	Frames []symbolize.Frame // innermost first; none if no symbol covers the address
	// why there are no frames; nil if there are some, or if no symbol covers the address
	Err     error
	Pending bool      // the search for the debug file is not finished
	Kept    bool      // callers may cache the Answer, at most until Until if that is set
	Until   time.Time // from then on, a lookup may give better Frames; zero: Frames are final
}

// NewAsker returns an Asker with the Options of a report.
func NewAsker(o *Options) *Asker {
	p := patienceOf(o.Filter)
	if p == nil {
		p = &Patience{Symbolizer: o.Symbolizer, Local: o.Wait, Servers: o.Wait, Context: o.Context}
	}
	return newAsker(o, p)
}

func newAsker(o *Options, p *Patience) *Asker {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.endBlock() // ends a block of the log before the report
	return &Asker{o: o, expired: ctx, patience: p}
}

// patienceOf returns the Patience of a *filter.Filter, or nil for any other f.
func patienceOf(f io.Writer) *Patience {
	if access.Filter == nil { // the program does not import the filter's package
		return nil
	}
	if of, ok := access.Filter(f).(interface{ Patience() *Patience }); ok {
		return of.Patience()
	}
	return nil
}

// Prefetch starts the search for the debug file of f, and the time during which lookups may wait
// for the file. Only the first call for f has an effect.
func (a *Asker) Prefetch(f *Object) {
	if f.awaited != nil || f.Err != nil || a.o.Symbolizer == nil {
		return
	}
	f.awaited = a.patience.Name(f.ID, time.Now())
	a.o.Symbolizer.Prefetch(f.ID, f.Path)
}

// AtOnce looks up frames as Frames does, but without waiting: the Answer may be pending.
func (a *Asker) AtOnce(dst []symbolize.Frame, f *Object, rel uint64) Answer {
	if a.o.Symbolizer == nil || f.Err != nil {
		return Answer{Err: f.Err}
	}
	frames, err := a.o.Symbolizer.Ask(a.expired, dst, f.location(rel), symbolize.Policy{})
	return newAnswer(frames, err)
}

// Frames appends the frames at the module-relative address rel of f to dst. It waits for the debug
// file, as long as the Patience allows. After that, the Answer has names from the symbols of a file
// on this machine, or ErrPending. The frames are valid until dst is reused.
func (a *Asker) Frames(dst []symbolize.Frame, f *Object, rel uint64) Answer {
	if a.o.Symbolizer == nil || f.Err != nil {
		return Answer{Err: f.Err}
	}
	l := f.location(rel)
	var frames []symbolize.Frame
	var err error
	a.await(f, l, func(ctx context.Context) error {
		frames, err = a.o.Symbolizer.Ask(ctx, dst, l, symbolize.Policy{})
		return err
	})
	return newAnswer(frames, err)
}

// Variable returns the variable at the module-relative address rel of f, and waits as Frames does.
// A Variable without a name means that there is none. An error is the reason why f cannot be used,
// or why a later answer may differ.
func (a *Asker) Variable(f *Object, rel uint64) (v symbolize.Variable, err error) {
	if a.o.Symbolizer == nil || f.Err != nil {
		return v, f.Err
	}
	l := f.location(rel)
	a.await(f, l, func(ctx context.Context) error {
		v, err = a.o.Symbolizer.AskData(ctx, l, symbolize.Policy{})
		return err
	})
	return v, err
}

// await calls the function ask with a context that has ended. If the search for f's debug file is
// not finished, it calls ask once more, with the time that remains for f.
func (a *Asker) await(f *Object, l symbolize.Location, ask func(context.Context) error) {
	a.Prefetch(f)
	if !errors.Is(ask(a.expired), symbolize.ErrPending) {
		a.patience.Settle(f.awaited)
		return
	}
	a.patience.Await(f.awaited, l, ask)
}

func newAnswer(frames []symbolize.Frame, err error) Answer {
	got := Answer{Frames: frames, Err: err, Kept: err == nil, Pending: errors.Is(err, symbolize.ErrPending)}
	if len(frames) > 0 && got.Pending {
		got.Err = nil // frames named by symbols, until the debug file is found
	}
	for i := range frames {
		if t := frames[i].Until; !t.IsZero() && (got.Until.IsZero() || t.Before(got.Until)) {
			got.Until = t
		}
	}
	return got
}
