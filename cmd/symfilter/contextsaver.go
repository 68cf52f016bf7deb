package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/contextfile"
	"github.com/symfilter/symfilter/internal/input"
)

const (
	// delay after a change: the next maps of a process often follow at once
	keepSoon  = 100 * time.Millisecond
	keepAgain = time.Second // shortest time between two contexts
	keepShare = 50          // making contexts takes at most 1/50 of the time
	// longest pause between two contexts, whatever their cost: a machine that stalls for a second
	// while a context is made must not delay the next one for a minute
	keepLatest = 10 * time.Second
)

// A contextSaver saves the context of standard input to the file of --context-file: soon after a
// change, at most once a second, and at the end. A separate goroutine writes the file, so lines do
// not wait for the disk.
type contextSaver struct {
	file    *contextfile.File
	context []byte // context of the previous run; nil: none, or already passed to the engines
	diag    *diagnostics

	// guarded by of.mu
	of       *pass
	timer    *time.Timer
	pending  bool
	earliest time.Time // earliest time of the next save
	saves    int64     // contexts made

	writing sync.Mutex // held during a write of the file; guards written and problem
	written int64      // number of the last save in the file
	problem string     // last reported error
	failed  atomic.Bool
}

func (c *config) checkContextFile(files []string) error {
	if c.contextFile == "" {
		return nil
	}
	switch {
	case c.follow.on:
		return usageError{errors.New("--context-file is for standard input: with --follow, --state FILE keeps the context too")}
	case len(files) > 1 || len(files) == 1 && files[0] != "-":
		return usageError{errors.New("--context-file is for standard input: name no FILE, or follow the FILE with --follow and --state")}
	}
	if f := c.inputFormat(); f != input.Auto && !f.Continues() {
		return usageError{fmt.Errorf("--context-file keeps the context of a log, not of --input=%v: remove one of them", f)}
	}
	for _, o := range c.outputs {
		if !slices.Contains([]string{outputText, outputJSON, outputMarkup}, o.form) || o.file != "" {
			return usageError{fmt.Errorf("--context-file is for logs that a later run continues, but %s makes a complete output in each run: remove one of them", o.flag())}
		}
	}
	return nil
}

// openContextSaver opens the file of --context-file. It returns nil without the flag.
func (c *config) openContextSaver(diag *diagnostics) (*contextSaver, error) {
	if c.contextFile == "" {
		return nil, nil
	}
	file, context, unusable, err := contextfile.Open(string(c.contextFile))
	if err != nil {
		return nil, fmt.Errorf("--context-file: %w", err)
	}
	k := &contextSaver{file: file, context: context, diag: diag}
	if unusable == nil && len(context) > 0 {
		unusable = errors.Unwrap(input.New(input.Auto, input.Translators{}).Remember(context))
	}
	if unusable != nil {
		k.context = nil
		diag.sum("--context-file %s: %v; symfilter starts without a context", c.contextFile, unusable)
	}
	return k, nil
}

func (k *contextSaver) restore(e engine) {
	if k != nil && len(k.context) > 0 && e.input != nil {
		e.input.Remember(k.context) // openContextSaver has decoded the same context
	}
}

func (k *contextSaver) begin(p *pass) {
	if k == nil {
		return
	}
	k.of, k.context = p, nil // the engines have the context now
	k.timer = time.AfterFunc(keepSoon, k.save)
	k.timer.Stop()
}

// look schedules a save if the processes have changed. k.of.mu is held.
func (k *contextSaver) look() {
	if k == nil || !k.of.input.ProcessesChanged() || k.pending {
		return
	}
	k.pending = true
	k.timer.Reset(max(keepSoon, time.Until(k.earliest)))
}

// save saves the context now. It does nothing after the end of the pass.
func (k *contextSaver) save() {
	k.of.mu.Lock()
	if k.of.ended {
		k.of.mu.Unlock()
		return
	}
	begin := time.Now()
	context, ok := k.of.input.AppendProcesses(nil)
	now := time.Now()
	k.earliest = now.Add(pauseAfter(now.Sub(begin)))
	k.pending = false
	k.saves++
	number := k.saves
	k.of.mu.Unlock()
	if ok && !k.write(number, context) {
		k.retry()
	}
}

// pauseAfter returns the pause after a context that took this long to make.
func pauseAfter(took time.Duration) time.Duration {
	return min(max(keepAgain, took*keepShare), keepLatest)
}

// retry schedules another save even without a change, since a full disk may get space.
func (k *contextSaver) retry() {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	if k.of.ended || k.pending {
		return
	}
	k.pending = true
	k.timer.Reset(max(keepAgain, time.Until(k.earliest)))
}

// end saves the context at the end of the input. k.of.mu is held.
func (k *contextSaver) end() {
	if k == nil {
		return
	}
	k.timer.Stop()
	k.saves++
	if context, ok := k.of.input.AppendProcesses(nil); ok {
		k.write(k.saves, context)
	}
}

// write writes the context with this number, unless the file already has a later context. It
// returns false if the write fails.
func (k *contextSaver) write(number int64, context []byte) (ok bool) {
	k.writing.Lock()
	defer k.writing.Unlock()
	if number <= k.written {
		return true
	}
	err := k.file.Save(context)
	k.failed.Store(err != nil)
	if err == nil {
		k.written = number
	} else if problem := err.Error(); problem != k.problem {
		k.problem = problem
		k.diag.line("%s", problem)
	}
	return err == nil
}

// await waits until the file is not being written.
func (k *contextSaver) await() {
	k.writing.Lock()
	defer k.writing.Unlock()
}

// close releases the file, and reports whether it has the last context.
func (k *contextSaver) close() (ok bool) {
	if k == nil {
		return true
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.file.Close()
	return !k.failed.Load()
}
