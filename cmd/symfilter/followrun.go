package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/unpack"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/internal/written"
)

// followPatience bounds the wait for blocked output after a signal. The checkpoint is written after
// this wait, and both together take less than a second.
const followPatience = 700 * time.Millisecond

// followFlags are --follow and the flags that need it.
type followFlags struct {
	on       bool
	state    fileName
	start    startAt
	poll     bool
	wait     waitFor
	withName bool
	exclude  []string
}

// check returns an error if the flags contradict each other or the files.
func (f *followFlags) check(c *config, files []string) error {
	if !f.on {
		return refuse("needs --follow: add it",
			usedFlag{"--state", f.state != ""}, usedFlag{"--start-at", f.start.set}, usedFlag{"--poll", f.poll},
			usedFlag{"--rotate-wait", f.wait.set}, usedFlag{"--with-filename", f.withName},
			usedFlag{"--exclude-path", len(f.exclude) > 0})
	}
	if len(files) == 0 {
		return usageError{errors.New("--follow: no FILE is given; standard input needs no --follow")}
	}
	if slices.Contains(files, "-") {
		return usageError{errors.New(`--follow cannot follow "-": standard input needs no --follow`)}
	}
	for _, o := range c.outputs {
		if inputOf(o.form) != "" || o.form == outputHTML || isStacked(o.form) || findingsPrinter(o.form) != nil || o.file != "" {
			return usageError{fmt.Errorf("%s needs whole files: remove --follow", o.flag())}
		}
	}
	return nil
}

type startAt struct {
	follow.Start
	set bool
}

func (s *startAt) Set(value string) (err error) {
	s.Start, err = follow.ParseStart(value)
	s.set = err == nil
	return err
}

// A followRun follows files. Each file has its own engine.
type followRun struct {
	*stream
	c      *config
	w      io.Writer // standard output
	dumps  *dumpList
	engine func(in *os.File, label string, regular bool, w io.Writer) engine
	packed *unpack.Memory // for rotated files that were compressed

	// guards live; held while a file's counts move from live to the sum
	one  sync.Mutex
	live map[*followed]struct{} // files whose counts are not in the sum yet
	out  commonOutput

	remindOf func(doctor.Counts) // prints a summary of the unresolved addresses so far

	halt func() // stops following; nil before run has started
}

// follow follows files until a signal arrives or the output's reader closes it. It returns the exit
// code.
func (r *filterRun) follow(files []string, packed *unpack.Memory) int {
	p := followRun{
		stream: r.stream, c: r.c, w: r.pipelines[0].w, dumps: r.dumps, engine: r.engine, packed: packed,
		remindOf: func(sum doctor.Counts) { r.summarize(sum, r.stream.stop.signal() != 0) },
	}
	return p.run(files)
}

func (p *followRun) run(files []string) int {
	flags := &p.c.follow
	self, err := p.stream.out.Stat()
	if err != nil {
		p.diag.line("standard output: %v", wording.Cause(err))
		return exitIO
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && self.Mode().IsRegular() && os.SameFile(info, self) {
			p.diag.line("%s is also the output, and is not read", name)
			return exitIO
		}
	}
	p.out = commonOutput{w: p.w, tell: p.diag.line, stop: p.stop.reading, headers: isTerminal(p.stream.out) && several(files) && !flags.withName && p.c.output != outputJSON}
	o := follow.Options{
		Names:      files,
		Exclude:    flags.exclude,
		Open:       p.sink,
		Unpack:     func(r io.Reader) (io.Reader, func(), error) { return input.Unpacked(r, p.packed) },
		Start:      flags.start.Start,
		State:      string(flags.state),
		Poll:       flags.poll,
		RotateWait: flags.wait.Duration,
		Skip:       func(info os.FileInfo) bool { return os.SameFile(info, self) },
		Notify:     p.tell,
	}
	if p.dumps != nil {
		o.Workers = 1 // all files share one list
	}
	if unread := written.Unread(p.stream.out); flags.state != "" && unread != nil {
		p.out.part = pipePart
		o.Taken = written.Taken(p.out.written.Load, unread)
	}
	if flags.state != "" && self.Mode().IsRegular() {
		o.Sync = p.stream.out.Sync
	}
	f, err := follow.New(o)
	if err != nil {
		p.diag.line("--follow: %v", err)
		return exitIO
	}
	// this process has locked the checkpoint, so no other process is still printing the unfinished
	// line
	if flags.state != "" && written.IsTorn(p.stream.out) {
		if err := p.out.endLine(); err != nil {
			p.diag.line("write standard output: %v", wording.Cause(err))
			return exitIO
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p.halt = stop
	p.stop.last.Store(func() { f.Save() })
	go func() {
		select {
		case <-p.stop.reading:
		case <-ctx.Done():
		}
		stop()
	}()
	p.stop.hangups.onHangup(f.Look, ctx.Done())
	written.AwaitClosed(p.stream.out, stop)
	go p.remind(ctx)
	err = f.Run(ctx)
	p.unread = p.stop.signal() == 0
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return exitOK // the reader of the output has closed it
	case p.stop.signal() != 0 && errors.Is(err, context.Canceled):
		return exitOK
	}
	p.unwritten = true
	p.diag.line("%s", followError(err))
	return exitIO
}

// Intervals of reports about unresolved addresses while files are followed.
const (
	// time before the first report, and between two checks for new unresolved addresses
	remindFirst = time.Minute
	remindEvery = time.Hour // between two reports
)

// remind reports the unresolved addresses at intervals, if there are more than in the last report.
func (p *followRun) remind(ctx context.Context) {
	printed := int64(0)
	for wait := remindFirst; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = remindFirst
		if sum := p.soFar(); sum.Failed > printed {
			p.remindOf(sum)
			printed, wait = sum.Failed, remindEvery
		}
	}
}

func (p *followRun) soFar() doctor.Counts {
	p.one.Lock()
	sum := doctor.Sum{}
	sum.Add(p.unresolved.All())
	live := slices.Collect(maps.Keys(p.live))
	p.one.Unlock()
	for _, f := range live {
		sum.Add(f.countsSoFar())
	}
	return sum.All()
}

// several reports whether names may match more than one file.
func several(names []string) bool { return len(names) > 1 || strings.ContainsAny(names[0], "*?[") }

func followError(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok && path.Op == "write" {
		return "write standard output: " + path.Err.Error()
	}
	return err.Error()
}

// tell prints an event of the followed files. Routine events need --verbose.
func (p *followRun) tell(e follow.Event) {
	if e.Routine && !p.diag.verbose {
		return
	}
	if e.Name != "" {
		e.Message = e.Name + ": " + e.Message
	}
	p.diag.printf("%s", e.Message)
}
