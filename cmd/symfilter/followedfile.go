package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
)

func (p *followRun) sink(name string) (*follow.Sink, error) {
	f := &followed{p: p, name: name}
	f.out = p.out.of(name, p.c)
	f.begin()
	p.one.Lock()
	defer p.one.Unlock()
	if p.live == nil {
		p.live = make(map[*followed]struct{})
	}
	p.live[f] = struct{}{}
	return &follow.Sink{
		WriteCloser: f,
		Written:     f.written,
		Rotated:     f.rotated,
		Quiet:       f.beQuiet,
		Context:     f.context,
		Changed:     func() bool { return f.decided.Swap(false) },
		Restore:     f.restore,
		Suspend:     f.suspend,
	}, nil
}

// A followed filters the lines of one file. The file's worker and the timer's goroutine use it,
// guarded by mu.
type followed struct {
	p    *followRun
	name string
	out  *fileLines

	mu sync.Mutex
	engine
	hinted  bool        // a hint was printed, or an earlier run has read the beginning
	silence *time.Timer // nil until lines are kept because their format is unknown
	ended   bool        // nothing more is printed
	err     error       // error of the timer's goroutine
	decided atomic.Bool // the timer decided the format since the last call of Changed
}

func (f *followed) begin() { f.engine = f.p.engine(nil, f.name, false, f.out) }

// Write filters lines. While printing is off, it reads them only for their context, as far as the
// format allows.
func (f *followed) Write(lines []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	if f.out.quiet && f.input.Format() == input.Markup && f.input.Passes() {
		return f.takeIn(lines)
	}
	n, err = f.engine.Write(lines)
	f.giveHint()
	f.await()
	return n, err
}

// giveHint prints advice, once per file, if nothing was resolved.
func (f *followed) giveHint() {
	if f.hinted || !f.p.hints || f.out.quiet {
		return
	}
	if hint := f.hint(f.name); hint != "" {
		f.p.diag.sum("%s: %s", f.name, hint)
		f.hinted = true
	}
}

// await starts the timer that decides an unknown format after a silence. It stops the timer once
// the format is known.
func (f *followed) await() {
	switch undecided := f.input.Undecided(); {
	case undecided && f.silence == nil:
		f.silence = time.AfterFunc(silence, f.silent)
	case undecided:
		f.silence.Reset(silence)
	case f.silence != nil:
		f.silence.Stop()
	}
}

func (f *followed) silent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.err != nil || !f.input.Undecided() {
		return
	}
	defer f.decided.Store(true)
	if f.err = f.input.Decide(); f.err != nil {
		if f.p.halt != nil {
			f.p.halt()
		}
		return
	}
	f.await() // compressed input may not be decompressed yet
}

// takeIn filters only lines that may change the meaning of later lines.
func (f *followed) takeIn(lines []byte) (int, error) {
	n := len(lines)
	f.sniffer.Look(lines)
	for line := range input.ContextLines(lines) {
		if _, err := f.engine.Write(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// beQuiet turns printing off if on is true, and back on if it is false. A module line that is still
// collecting its maps is treated like the lines before the change.
func (f *followed) beQuiet(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out.quiet != on {
		// lines kept for an unknown format came before the change; the next write returns the
		// error, if any
		f.input.Decide()
	}
	if f.out.quiet && !on && f.input.Format() == input.Markup {
		f.engine.Close() // prints nothing, so it cannot fail
	}
	f.out.quiet = on
	f.sniffer.SetPast(on)
}

func (f *followed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := exceptDamage(f.engine.Close())
	f.giveHint()
	f.finish()
	return errors.Join(f.err, err)
}

// exceptDamage returns err, or nil for damaged input, which was already reported. Damage in one
// file must not end the run.
func exceptDamage(err error) error {
	if _, ok := errors.AsType[*input.UnpackError](err); ok {
		return nil
	}
	return err
}

func (f *followed) finish() {
	f.ended = true
	if f.silence != nil {
		f.silence.Stop()
	}
	f.out.release()
	f.p.one.Lock()
	defer f.p.one.Unlock()
	if f.end != nil {
		f.end()
	}
	delete(f.p.live, f)
}

// countsSoFar returns the counts of the file, if any.
func (f *followed) countsSoFar() doctor.Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		return doctor.Counts{}
	}
	return f.counts()
}

// rotated returns the sink for the file that has replaced this one under the same name. It returns
// nil for a log: the lines of the new file continue in f. Formats with a beginning and an end get a
// new sink.
func (f *followed) rotated() (*follow.Sink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// lines kept for an unknown format precede the lines of the next file
	if err := f.input.Decide(); err != nil {
		return nil, err
	}
	if f.input.Format().Continues() {
		return nil, nil
	}
	return f.p.sink(f.name)
}

// written returns the offset in the output after the last printed byte, including bytes printed
// after a silence.
func (f *followed) written() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.end
}

func (f *followed) context(dst []byte) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.input.AppendContext(dst)
}

func (f *followed) restore(context []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.input.Restore(context)
	f.hinted = true // an earlier run has read the beginning
	if err != nil {
		f.drop() // a failed restore leaves an unusable engine
		f.begin()
	}
	f.await()
	return err
}

// drop ends the engine without output. A report's reader is not closed, since it would report that
// its input is empty.
func (f *followed) drop() {
	if f.input.Format().Continues() {
		quiet := f.out.quiet
		f.out.quiet = true
		f.engine.Close() // prints nothing, so it cannot fail
		f.out.quiet = quiet
	}
}

// suspend ends the lines of this run. In a log with markup, it prints the module line that is
// collecting its maps; maps that the next run reads get their own line. Lines held by an Envelope
// are in its context, for the next run. A profile, or a report of sp-rtrace, is printed as far as
// it was read, since most are complete. If the file grows, the next run prints all of it again.
func (f *followed) suspend() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	if f.p.dumps != nil {
		f.p.dumps.saveIfDirty()
	}
	switch f.input.Format() {
	case input.Markup, input.Callgrind, input.RTrace:
		err = errors.Join(err, f.engine.Close())
	}
	f.finish()
	return err
}
