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
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// How long the lines of an input may wait for debug files, unless --wait is given.
const (
	waitFile  = 90 * time.Second // for a file: nobody watches it being read
	closeWait = time.Second      // at the end, for work in the background
)

// A filterRun is a run that filters inputs: what its lanes share.
type filterRun struct {
	c      *config
	inputs int // files on the command line
	std    standard
	diag   *diagnostics
	status *statusLine

	servers *debuginfod.Client
	opened  *symfilter.Opened
	sources *sourceText
	biases  []valgrind.Map
	dumps   *dumpList // nil: dump files are not listed
	stream  *stream
	lanes   []*lane // the first is of the main output
	failed  bool    // a gate has
	keeper  *keeper // of the context of standard input; nil without --context-file
}

// filterAll filters files, or standard input, to standard output and the files of --output, and
// returns the exit code.
func filterAll(c *config, files []string, std standard) (int, error) {
	if err := c.pickOutput(); err != nil {
		return exitUsage, err
	}
	maps, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := errors.Join(c.check(), c.follow.check(c, files), c.changes.check(c, files), c.gates.check(c, files), c.suppressions.check(c), c.checkPorts(files), c.checkContextFile(files)); err != nil {
		return exitUsage, err
	}
	if err := c.checkWritten(files, std); err != nil {
		return exitUsage, err
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	r := &filterRun{c: c, inputs: len(files), std: std, status: &statusLine{}}
	if isTerminal(std.err) && !c.quiet {
		r.status.w = std.err
	}
	r.diag = &diagnostics{w: besideStatus{std.err, r.status, false}, quiet: c.quiet, verbose: c.verbose}
	if r.servers, err = c.client(os.Getenv, r.diag, r.status); err != nil {
		return exitIO, err
	}
	defer c.close()
	if err := c.gates.load(r.diag); err != nil {
		return exitIO, err
	}
	if err := c.suppressions.load(); err != nil {
		return exitIO, err
	}
	if r.keeper, err = c.openKeeper(r.diag); err != nil {
		return exitIO, err
	}
	if err := r.openLanes(files); err != nil {
		return exitIO, err
	}
	defer r.endLanes(false, false)
	c.confine(r.diag, files, true)
	if r.biases, err = c.biases(); err != nil {
		return exitIO, err
	}
	if err := c.rtrace.load(); err != nil {
		return exitIO, err
	}
	offHeap := startup.LimitHeap(int64(c.maxMemory))
	if c.follow.on {
		startup.TuneGarbage(startup.GarbageMedium)
	} else {
		startup.TuneGarbage(startup.GarbageSmall)
	}
	c.warnOfUseless(r.diag, len(files) == 0)
	symbols := c.symbols(r.servers)
	symbols.Symbolizer.OffHeap = offHeap
	if c.follow.on { // the report at the end may be far away
		symbols.Symbolizer.Notify = func(msg string) { r.diag.printf("%s", oneLine(msg)) }
	}
	if r.opened, err = symbols.Open(); err != nil {
		return exitIO, err
	}
	defer closeSoon(r.opened)
	c.searched = r.opened.SymbolPath
	sym := r.opened.Symbolizer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := filter.Options{
		Symbolizer:  sym,
		Cache:       r.opened.Cache,
		Context:     ctx,
		ProcessKey:  c.process.Regexp,
		Paths:       filter.Paths{Basenames: c.basenames, Map: maps},
		ModuleLines: c.modules(),
	}
	if options.Dialects, err = c.dialects(false); err != nil {
		return exitUsage, err
	}
	options.Dialects.Complete = r.opened.Complete
	live := len(files) == 0 || c.follow.on || slices.Contains(files, "-") || slices.ContainsFunc(files, c.isPort)
	if r.sources, err = c.sources(sym, r.servers, maps, live, r.diag); err != nil {
		return exitUsage, err
	}
	defer r.sources.close()
	if c.dumps != "" {
		r.dumps = newDumpList(string(c.dumps), r.diag)
	}
	shared := newReports(c, sym, r.biases, maps)
	for _, l := range r.lanes {
		if err := r.prepare(l, options, shared); err != nil {
			return exitUsage, err
		}
	}
	shareCaches(r.lanes, int64(c.maxMemory))
	words, patience := lastWords, patience
	switch {
	case c.follow.on:
		words, patience = 0, followPatience
	case slices.ContainsFunc(files, c.isPort):
		words = 0 // the producer does not end
	}
	s := &stream{
		out: std.out, diag: r.diag, stop: newStopper(cancel, words, patience, c.hangups(files, std.in)), hints: c.output != outputMarkup,
		isPort: c.isPort, rate: c.rate(), portWait: c.portWait(std), announces: isTerminal(std.err), keeper: r.keeper,
	}
	r.stream = s
	s.engine = func(in *os.File, label string, regular bool) engine { return r.engine(in, label, regular, nil) }
	s.finish = r.finish
	enlargePipe(std.out)

	if len(files) == 0 {
		files = []string{"-"}
		if isTerminal(std.in) && isTerminal(std.err) {
			r.diag.printf("reading from the terminal; end with Ctrl-D; --help prints help")
		}
	}
	var code int
	if c.follow.on {
		code = (&pursuit{stream: s, c: c, w: r.lanes[0].w, dumps: r.dumps, engine: r.engine, packed: shared.packed, remindOf: func(sum counts) { s.printUnresolved(c, sym, sum) }}).follow(files)
	} else {
		code = s.files(files, std.in)
	}
	if failed := r.endLanes(s.stop.signal() == 0 && !s.unwritten && code != exitUsage, code == exitOK); failed != exitOK && code == exitOK {
		code = failed
	}
	r.status.set("")
	if !r.keeper.close() && code == exitOK {
		code = exitIO
	}
	s.searched = c.output != outputMarkup
	s.report(c, sym)
	switch {
	case code != exitOK:
		return code, nil
	case r.dumps != nil && r.dumps.failed:
		return exitIO, nil
	case r.failed:
		return exitGate, nil
	case c.strict && s.unresolved.all().failed > 0:
		return exitStrict, nil
	}
	return exitOK, nil
}

// openLanes makes a lane for each output, and opens its file. Outputs of findings share a lane, which
// a gate needs also without one.
func (r *filterRun) openLanes(files []string) error {
	var shared *found
	share := func(form string) {
		if shared == nil {
			shared = new(found)
			r.lanes = append(r.lanes, &lane{form: form, w: io.Discard, quiet: len(r.lanes) > 0, found: shared})
		}
	}
	for _, o := range r.c.outputs {
		l := &lane{form: o.form, w: r.std.out, quiet: len(r.lanes) > 0}
		if o.form == outputPprof && o.file == "" && isTerminal(r.std.out) {
			r.endLanes(false, false)
			return usageError{errBinary}
		}
		if o.isFolder() {
			f, err := openFolder(o.file)
			if err != nil {
				r.endLanes(false, false)
				return &outputError{o.file, err}
			}
			f.ended = func() bool { return r.stream == nil || r.stream.stop.signal() != 0 }
			l.w, l.folder = io.Discard, f
		} else if o.file != "" {
			f, err := openOutput(o.file)
			if err != nil {
				r.endLanes(false, false)
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
			r.lanes = append(r.lanes, l)
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

// prepare sets what the lane needs to make engines. base are the options of all lanes.
func (r *filterRun) prepare(l *lane, base filter.Options, shared reports) error {
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
		o.Output, o.Printer, terminal = filter.HTML, l.page, false
	}
	o.Color = c.color.mode(terminal, os.Getenv)
	o.Terminal = terminal && !c.raw
	isText := o.Output == filter.Text
	r.sources.apply(&o, isText && c.source.hyperlinks(terminal, o.Color, os.Getenv))
	if c.output == outputMarkup {
		o.Dialects.Elements = true
		o.Color, o.Terminal = filter.ColorKeep, false // the bytes of the log, for another filter
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
		shared.joined = &jointProfile{r: &shared, run: r}
	}
	l.reports = &shared
	return nil
}

// engine returns the engine for an input. Its lines go to main, if that is not nil, in place of the
// writer of the main output.
func (r *filterRun) engine(in *os.File, label string, regular bool, main io.Writer) engine {
	engines := make([]engine, len(r.lanes))
	for i, l := range r.lanes {
		w := l.w
		if i == 0 && main != nil {
			w = main
		}
		engines[i] = l.engine(r, in, label, regular, w)
		r.keeper.restore(engines[i])
	}
	e := allOf(engines)
	if r.dumps != nil {
		return r.dumps.behind(e)
	}
	return e
}

// endLanes ends the outputs, and returns the exit code. whole is set if all inputs were read as far
// as possible, and written; sound is set if none could not be read. It has no effect when it is
// called again.
func (r *filterRun) endLanes(whole, sound bool) (code int) {
	for _, l := range r.lanes {
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
				r.diag.line("write standard output: %v", bare(err))
			}
			code = exitIO
		}
	}
	r.lanes = nil
	return code
}

// of returns how long the lines of an input may wait.
func (w waitFor) of(regular bool) filter.Patience {
	switch {
	case w.set:
		return filter.Patience{Local: w.Duration, Servers: w.Duration}
	case regular:
		return filter.Patience{Local: waitFile, Servers: waitFile}
	}
	return filter.Patience{Local: symfilter.StreamWait, Servers: symfilter.StreamWait, PerMinute: symfilter.StreamWaitPerMinute}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) (is bool) {
	control(f, func(fd uintptr) { is = term.IsTerminal(int(fd)) })
	return is
}

// control calls use with the descriptor of f. It does not use Fd, which would change the
// descriptor's mode for all processes that share it.
func control(f *os.File, use func(fd uintptr)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(use)
	}
}

// close closes the finders: nothing half-written stays, and what they learned is kept.
func (c *config) close() {
	for _, closer := range c.closers {
		closer.Close() // if it fails, the next run learns again
	}
}

// closeSoon closes the symbols, so that no unfinished index stays on disk and what was learned of
// folders is kept. It does not wait for a folder that hangs.
func closeSoon(symbols *symfilter.Opened) {
	done := make(chan struct{})
	go func() { defer close(done); symbols.Close() }()
	select {
	case <-done:
	case <-time.After(closeWait):
	}
}

// symbols returns where debug files are: what was named for this run first, the system's folder
// after it, the module's own file, the servers last.
func (c *config) symbols(servers *debuginfod.Client) symfilter.Symbols {
	return symfilter.Symbols{
		SymbolPaths: c.searchPaths(),
		IDsFiles:    c.idsFiles,
		BuildIDDirs: c.trees,
		DebugDirs:   c.debugDirs,
		NoPaths:     c.noPaths,
		Client:      servers,

		NoDefaultDebugDirs: c.noDefaultDirs,

		NoIndex:    c.noIndex,
		MaxMemory:  int64(c.maxMemory),
		Symbolizer: symbolize.Options{Jobs: int(c.jobs), DWP: string(c.dwp), NoDemangle: c.noDemangle, NoInlines: c.noInlines, Names: c.profile.names},
	}
}
