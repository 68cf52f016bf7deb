package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/valgrind"
)

// waitFile bounds how long lines of a file wait for debug files without --wait. It is long, since
// no user watches the single lines of a file.
const waitFile = 90 * time.Second

// A filterRun is a run that filters inputs. Its pipelines share it.
type filterRun struct {
	*session
	inputs       int // files on the command line
	std          standard
	sources      *sourceText
	biases       []valgrind.Map
	dumps        *dumpList // nil: dump files are not listed
	stream       *stream
	pipelines    []*pipeline   // the first one makes the main output
	failed       bool          // a gate has failed
	contextSaver *contextSaver // saves the context of standard input; nil without --context-file
}

// filterAll filters files, or standard input, to standard output and the files of --output.
func filterAll(c *config, files []string, std standard) (int, error) {
	if err := c.checkFilter(files, std); err != nil {
		return exitUsage, err
	}
	maps, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	r := &filterRun{inputs: len(files), std: std}
	if r.session, err = c.session(std); err != nil {
		return exitIO, err
	}
	defer r.close()
	defer r.endPipelines(false, false)
	if err := r.open(files); err != nil {
		return exitIO, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shared := newReports(c, r.Symbolizer, r.biases, maps)
	if err := r.preparePipelines(ctx, files, shared, maps); err != nil {
		return exitUsage, err
	}
	defer r.sources.close()
	r.stream = r.newStream(files, cancel)
	enlargePipe(std.out)
	if len(files) == 0 {
		files = []string{"-"}
		if isTerminal(std.in) && isTerminal(std.err) {
			r.diag.printf("reading from the terminal; end with Ctrl-D; --help prints help")
		}
	}
	code := exitOK
	if c.follow.on {
		code = r.follow(files, shared.packed)
	} else {
		code = r.finish(r.stream.files(files, std.in))
	}
	return r.end(r.stream.exit(code)), nil
}

// checkFilter returns an error if flags contradict each other, the files, or the standard streams.
func (c *config) checkFilter(files []string, std standard) error {
	if err := c.pickOutput(); err != nil {
		return err
	}
	if err := errors.Join(c.check(), c.follow.check(c, files), c.changes.check(c, files), c.gates.check(c, files), c.suppressions.check(c), c.checkPorts(files), c.checkContextFile(files)); err != nil {
		return err
	}
	return c.checkWritten(files, std)
}

// open opens all files of the run except its inputs. It confines the process once the outputs are
// open.
func (r *filterRun) open(files []string) (err error) {
	c := r.c
	if err := c.gates.load(r.diag); err != nil {
		return err
	}
	if err := c.suppressions.load(); err != nil {
		return err
	}
	if r.contextSaver, err = c.openContextSaver(r.diag); err != nil {
		return err
	}
	if err := r.openPipelines(files); err != nil {
		return err
	}
	if err := r.session.open(files); err != nil {
		return err
	}
	if r.biases, err = c.biases(); err != nil {
		return err
	}
	r.warn(len(files) == 0)
	return c.rtrace.load()
}

func (r *filterRun) preparePipelines(ctx context.Context, files []string, shared reports, maps []buildid.PrefixMap) error {
	c := r.c
	options, err := r.filterOptions(ctx, maps)
	if err != nil {
		return err
	}
	live := len(files) == 0 || c.follow.on || slices.Contains(files, "-") || slices.ContainsFunc(files, c.isPort)
	if r.sources, err = c.sources(r.Symbolizer, r.servers, maps, live, r.diag); err != nil {
		return err
	}
	if c.dumps != "" {
		r.dumps = newDumpList(string(c.dumps), r.diag)
	}
	for _, l := range r.pipelines {
		if err := r.prepare(l, options, shared); err != nil {
			r.sources.close()
			return err
		}
	}
	shareCaches(r.pipelines, int64(c.maxMemory))
	return nil
}

// newStream returns the stream that filters the files with the engines of the run. The first signal
// calls cancel.
func (r *filterRun) newStream(files []string, cancel func()) *stream {
	c := r.c
	words, patience := lastWords, patience
	switch {
	case c.follow.on:
		words, patience = 0, followPatience
	case slices.ContainsFunc(files, c.isPort):
		words = 0 // the producer does not end
	}
	return &stream{
		out: r.std.out, diag: r.diag, stop: newStopper(cancel, words, patience, c.hangups(files, r.std.in)), hints: c.output != outputMarkup,
		isPort: c.isPort, rate: c.rate(), portWait: c.portWait(r.std), announces: isTerminal(r.std.err), contextSaver: r.contextSaver,
		engine: func(in *os.File, label string, regular bool) engine { return r.engine(in, label, regular, nil) },
	}
}

// end ends the outputs, reports the unresolved addresses, and returns the exit code of the run.
// code is the exit code of the inputs.
func (r *filterRun) end(code int) int {
	c, s := r.c, r.stream
	if failed := r.endPipelines(s.stop.signal() == 0 && !s.unwritten && code != exitUsage, code == exitOK); code == exitOK {
		code = failed
	}
	r.status.set("")
	if !r.contextSaver.close() && code == exitOK {
		code = exitIO
	}
	sum := s.unresolved.All()
	r.report(sum, c.output != outputMarkup && !s.unread)
	if !c.explain && !s.unread && !s.unwritten {
		r.summarize(sum, s.stop.signal() != 0) // after a signal the process must end within a second
	}
	switch {
	case code != exitOK:
		return code
	case r.dumps != nil && r.dumps.failed:
		return exitIO
	case r.failed:
		return exitGate
	case c.strict && sum.Failed > 0:
		return exitStrict
	}
	return exitOK
}

// openPipelines makes a pipeline for each output, and opens the output's file. All outputs of
// findings share one pipeline. If a gate is on, openPipelines makes this pipeline even without such
// an output.
func (r *filterRun) openPipelines(files []string) error {
	var shared *found
	share := func(form string) {
		if shared == nil {
			shared = new(found)
			r.pipelines = append(r.pipelines, &pipeline{form: form, w: io.Discard, quiet: len(r.pipelines) > 0, found: shared})
		}
	}
	for _, o := range r.c.outputs {
		l := &pipeline{form: o.form, w: r.std.out, quiet: len(r.pipelines) > 0}
		if o.form == outputPprof && o.file == "" && isTerminal(r.std.out) {
			r.endPipelines(false, false)
			return usageError{errBinary}
		}
		if o.isFolder() {
			f, err := openFolder(o.file)
			if err != nil {
				r.endPipelines(false, false)
				return &outputError{o.file, err}
			}
			f.ended = func() bool { return r.stream == nil || r.stream.stop.signal() != 0 }
			l.w, l.folder = io.Discard, f
		} else if o.file != "" {
			f, err := openOutput(o.file)
			if err != nil {
				r.endPipelines(false, false)
				return &outputError{o.file, err}
			}
			l.w, l.file = f, f
		} else if isTerminal(r.std.out) && r.status.w != nil {
			l.w = besideStatus{r.std.out, r.status, true}
		}
		if o.form == outputHTML {
			l.page = newPage(files)
		}
		if r.c.findingsPrinter(o.form) == nil {
			r.pipelines = append(r.pipelines, l)
			continue
		}
		share(o.form)
		shared.outs = append(shared.outs, foundOutput{o.form, l.w, l.file})
	}
	if r.c.gates.on() {
		share(outputNone)
	}
	return nil
}

// prepare sets the config, the filter options and the reports of a pipeline, from which its engines
// are made. base has the options of all pipelines.
func (r *filterRun) prepare(l *pipeline, base filter.Options, shared reports) error {
	c := new(config)
	*c = *r.c
	c.output = l.form
	l.c = c
	o := base
	terminal := l.file == nil && l.folder == nil && isTerminal(r.std.out)
	switch {
	case c.output == outputJSON:
		o.Output, terminal = filter.JSON, false // objects are for programs
	case l.page != nil:
		o.Printer, terminal = l.page, false
	}
	o.Color = c.color.mode(terminal, os.Getenv)
	o.Terminal = terminal && !c.raw
	isText := o.Output == filter.Text && o.Printer == nil
	r.sources.apply(&o, isText && c.source.hyperlinks(terminal, o.Color, os.Getenv))
	if c.output == outputMarkup {
		o.Dialects.Elements = true
		// another filter needs the bytes of the log unchanged
		o.Color, o.Terminal = filter.ColorKeep, false
	}
	out := r.std.out
	if l.file != nil {
		out = l.file.File
	}
	if err := c.lookFor(&o, out, os.Getenv); err != nil {
		return err
	}
	if r.dumps != nil && !l.quiet {
		o.DumpFile = r.dumps.add
	}
	l.options = o
	if l.found != nil {
		if err := l.found.collect(c, shared.profiles); err != nil {
			return usageError{err}
		}
	}
	shared.c, shared.output, shared.color, shared.found = c, c.output, o.Color == filter.ColorAlways, l.found
	shared.folder = l.folder
	if c.joins() {
		shared.joined = &joinedProfile{r: &shared, run: r}
	}
	l.reports = &shared
	return nil
}

// engine returns the engine for an input. main, if not nil, replaces the writer of the main output.
func (r *filterRun) engine(in *os.File, label string, regular bool, main io.Writer) engine {
	engines := make([]engine, len(r.pipelines))
	for i, l := range r.pipelines {
		w := l.w
		if i == 0 && main != nil {
			w = main
		}
		engines[i] = l.engine(r, in, label, regular, w)
		r.contextSaver.restore(engines[i])
	}
	e := allOf(engines)
	if r.dumps != nil {
		return r.dumps.behind(e)
	}
	return e
}

// endPipelines ends the outputs, and returns the exit code. whole is set if all inputs were read as
// far as possible, and written. sound is set if all inputs were readable. Further calls have no
// effect.
func (r *filterRun) endPipelines(whole, sound bool) (code int) {
	for _, l := range r.pipelines {
		errs := l.end(whole, sound, r.diag)
		r.failed = r.failed || l.found != nil && l.found.gate.failed
		for _, err := range errs {
			var file *outputError
			switch {
			case err == nil, errors.Is(err, syscall.EPIPE):
				continue
			case errors.As(err, &file):
				r.diag.line("%v", file)
			default:
				r.stream.unwritten = true
				r.diag.line("write standard output: %v", wording.Cause(err))
			}
			code = exitIO
		}
	}
	r.pipelines = nil
	return code
}

// waitFor.of returns how long the lines of an input wait for debug files. regular is set for a
// regular file.
func (w waitFor) of(regular bool) filter.Patience {
	switch {
	case w.set:
		return filter.Patience{Local: w.Duration, Servers: w.Duration}
	case regular:
		return filter.Patience{Local: waitFile, Servers: waitFile}
	}
	return filter.Patience{Local: symfilter.StreamWait, Servers: symfilter.StreamWait, PerMinute: symfilter.StreamWaitPerMinute}
}

func isTerminal(f *os.File) (is bool) {
	control(f, func(fd uintptr) { is = term.IsTerminal(int(fd)) })
	return is
}

// control passes the descriptor of f to the function use. It does not call f.Fd, which would change
// the descriptor's mode for all processes that share it.
func control(f *os.File, use func(fd uintptr)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(use)
	}
}
