package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/child"
	"github.com/symfilter/symfilter/internal/procmaps"
	"github.com/symfilter/symfilter/internal/wording"
)

// Exit codes of run, as in shells and env(1).
const (
	exitNotStarted = 126
	exitNotFound   = 127
)

const (
	// lingerTime bounds the wait for output after the end of the program, if other processes still
	// have its descriptors.
	lingerTime = 2 * time.Second
	// deathWait bounds how long lines wait for debug files after the end of the program.
	deathWait = 2 * time.Second
)

// endGrace is the time after the end of the program in which signals do not end symfilter. A key
// such as Ctrl-C, which may have ended the program, also signals symfilter.
const endGrace = 200 * time.Millisecond

type programRun struct {
	*session
	program *child.Program
	maps    *procmaps.Processes
	stream  *stream

	mu   sync.Mutex
	code int // exit code if the program is not started or its output fails; else 0
}

// startProgram starts a program, filters its output, and returns its exit status.
func startProgram(c *config, args []string, std standard) (int, error) {
	if c.dash != 0 || len(args) == 0 {
		return exitUsage, usageError{errors.New("run: write symfilter run [flags] -- PROGRAM [ARG...]; all words after -- are the program's")}
	}
	if err := errors.Join(c.pickOutput(), c.check()); err != nil {
		return exitUsage, err
	}
	if _, err := c.dialects(false); err != nil {
		return exitUsage, err
	}
	if _, err := c.prefixMaps(); err != nil { // before the start of the program
		return exitUsage, err
	}
	r := &programRun{maps: procmaps.New(), stream: &stream{stop: &stopper{reading: make(chan struct{})}}}
	var err error
	if r.session, err = c.session(std); err != nil {
		return exitIO, err
	}
	status, err := r.run(args, std)
	r.close()
	switch {
	case err != nil && r.program == nil:
		return exitUsage, err
	case err != nil:
		return exitIO, err
	case r.program == nil:
		return r.code, nil
	case status.Signaled():
		child.Die(status.Signal())
		return exitSignal + int(status.Signal()), nil
	case status.ExitStatus() == exitOK:
		return r.code, nil
	}
	return status.ExitStatus(), nil
}

// run starts the program, filters its output, and returns the program's exit status. Steps that may
// fail come before the start. The program's maps and files are untrusted, and are read once this
// process is confined. The confinement needs the program's PID.
func (r *programRun) run(args []string, std standard) (status syscall.WaitStatus, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.stream.diag = r.diag
	if err := r.openSymbols(); err != nil {
		return status, err
	}
	runs, err := r.prepareOutputs(ctx, std)
	if err != nil {
		return status, err
	}
	signals := make(chan os.Signal, 16)
	notify(signals) // before the program can cause one
	if r.program, err = child.Start(args[0], args[1:], std.in, std.out, std.err); err != nil {
		if r.code = exitNotStarted; child.IsMissing(err) {
			r.code = exitNotFound
		}
		r.diag.line("run: %s: %v", args[0], wording.Cause(child.Reason(err)))
		return status, nil
	}
	defer r.program.Close()
	if r.program.Plain != nil {
		r.diag.printf("the output of the program is a pipe, since there is no pseudo-terminal: %v", wording.Cause(r.program.Plain))
	}
	r.c.child = r.program.PID
	r.c.confine(r.diag, nil, true)
	r.maps.Start(r.program.PID)
	go r.maps.Watch(ctx)
	go r.pass(signals)
	var outputs sync.WaitGroup
	for i, run := range runs {
		// without the program's maps, calls in its code may prove its load bias
		l := run.pipelines[0]
		l.options.Dialects.Candidates = append(l.options.Dialects.Candidates, r.program.Path)
		outputs.Go(func() { r.filter(run, r.program.Outputs[i]) })
	}
	status, err = r.program.Wait(func(sig syscall.Signal) {
		if r.program.Stop(sig) {
			r.program.Pass(syscall.SIGCONT)
		}
	})
	wait := time.AfterFunc(deathWait, cancel)
	defer wait.Stop()
	r.program.Ended(lingerTime)
	outputs.Wait()
	if r.program.Left() {
		r.diag.printf("%s has ended, but processes that it started still have its output open; symfilter no longer reads this output", args[0])
	}
	if r.maps.Cut() {
		r.diag.printf("some maps were not read, because there were too many processes, threads, children or mappings, so addresses may be unresolved: see docs/run.md")
	}
	for _, run := range runs {
		run.sources.close()
		run.endPipelines(true, true)
	}
	r.status.set("")
	sum := r.stream.unresolved.All()
	r.report(sum, true)
	if !r.c.explain {
		r.summarize(sum, status.Signaled())
	}
	return status, err
}

func (r *programRun) pass(signals <-chan os.Signal) {
	for sig := range signals {
		n, _ := sig.(syscall.Signal)
		if r.program.EndedBefore(endGrace) && child.Ends(n) {
			child.Die(n) // output remains that is not read
		}
		r.program.Pass(n)
	}
}

// notify makes the channel receive the signals for the program. Signals that nohup or a shell has
// set to be ignored stay ignored.
func notify(signals chan<- os.Signal) {
	for _, sig := range child.Signals {
		if n, _ := sig.(syscall.Signal); !child.IsIgnored(n) {
			signal.Notify(signals, sig)
		}
	}
}

func (r *programRun) prepareOutputs(ctx context.Context, std standard) (runs []*filterRun, err error) {
	c := r.c
	maps, err := c.prefixMaps()
	if err != nil {
		return nil, err
	}
	shared := newReports(c, r.Symbolizer, nil, maps)
	var all []*pipeline
	for _, to := range child.Files(std.out, std.err) {
		run := &filterRun{session: r.session, std: standard{in: std.in, out: to, err: std.err, text: std.text}, stream: r.stream}
		l := &pipeline{form: c.output, w: to}
		if isTerminal(to) && r.status.w != nil {
			l.w = besideStatus{to, r.status, true}
		}
		run.pipelines = []*pipeline{l}
		if err := run.preparePipelines(ctx, nil, shared, maps); err != nil {
			return nil, err
		}
		l.options.Terminal = false // the program is as trusted as if it had the terminal itself
		l.options.Dialects.Mapped = r.maps.At
		runs, all = append(runs, run), append(all, l)
	}
	shareCaches(all, int64(c.maxMemory))
	return runs, nil
}

func (r *programRun) filter(run *filterRun, o *child.Output) {
	in := r.maps.Reader(o)
	readErr, writeErr := r.stream.run(run.engine(o.To, o.To.Name(), false, nil), in, o.To.Name(), true)
	o.Close() // the program must notice that its output has no reader
	switch {
	case errors.Is(writeErr, syscall.EPIPE):
		return
	case writeErr != nil:
		r.diag.line("write %s: %v", o.To.Name(), wording.Cause(writeErr))
	case readErr != nil && !errors.Is(readErr, fs.ErrClosed):
		r.diag.line("read the output of the program: %v", wording.Cause(readErr))
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = exitIO
}
