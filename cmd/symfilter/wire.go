package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/input"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/symbolize"
)

// How long the lines of an input may wait for debug files, unless --wait is given.
const (
	waitFile  = 90 * time.Second // for a file: nobody watches it being read
	closeWait = time.Second      // at the end, for work in the background
)

const (
	overhead = 32 << 20 // bytes beside --max-memory that the garbage collector may leave: the runtime and the current lines
)

// filterAll filters files, or standard input, to standard output, and returns the exit code.
func filterAll(c *config, files []string, std standard) (int, error) {
	stdin, stdout, stderr := std.in, std.out, std.err
	maps, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := errors.Join(c.check(), c.follow.check(c, files), c.checkPorts(files)); err != nil {
		return exitUsage, err
	}
	if err := c.checkWritten(files, std); err != nil {
		return exitUsage, err
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	status := &statusLine{}
	if isTerminal(stderr) && !c.quiet {
		status.w = stderr
	}
	diag := &diagnostics{w: besideStatus{stderr, status, false}, quiet: c.quiet, verbose: c.verbose}
	servers, err := c.client(os.Getenv, diag, status)
	if err != nil {
		return exitIO, err
	}
	defer c.close()
	c.confine(diag, files, true)
	biases, err := c.biases()
	if err != nil {
		return exitIO, err
	}
	if err := c.rtrace.load(); err != nil {
		return exitIO, err
	}
	offHeap := limitHeap(c.maxMemory)
	tuneGarbage()
	c.warnOfUseless(diag, len(files) == 0)
	symbols := c.symbols(servers)
	symbols.Symbolizer.OffHeap = offHeap
	if c.follow.on { // the report at the end may be far away
		symbols.Symbolizer.Notify = func(msg string) { diag.printf("%s", oneLine(msg)) }
	}
	opened, err := symbols.Open()
	if err != nil {
		return exitIO, err
	}
	defer closeSoon(opened)
	c.searched = opened.SymbolPath
	sym := opened.Symbolizer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := filter.Options{
		Symbolizer: sym,
		Cache:      opened.Cache,
		Context:    ctx,
		ProcessKey: c.process.Regexp,
		Paths:      filter.Paths{Basenames: c.basenames, Map: maps},
	}
	options.ModuleLines = c.modules()
	if options.Dialects, err = c.dialects(false); err != nil {
		return exitUsage, err
	}
	options.Dialects.Complete = opened.Complete
	terminal := isTerminal(stdout)
	var out io.Writer = stdout
	if terminal && status.w != nil {
		out = besideStatus{stdout, status, true}
	}
	if c.output == outputJSON {
		options.Output, terminal = filter.JSON, false // objects are for programs
	}
	page := c.newPage(files)
	if page != nil {
		options.Output, options.Printer, terminal = filter.HTML, page, false
	}
	options.Color = c.color.mode(terminal, os.Getenv)
	options.Terminal = terminal && !c.raw
	live := len(files) == 0 || c.follow.on || slices.Contains(files, "-") || slices.ContainsFunc(files, c.isPort)
	sources, err := c.sources(sym, servers, maps, live, diag)
	if err != nil {
		return exitUsage, err
	}
	defer sources.close()
	sources.apply(&options, page == nil && c.output != outputJSON && c.source.hyperlinks(terminal, options.Color, os.Getenv))
	if c.output == outputMarkup {
		options.Dialects.Elements = true
		options.Color, options.Terminal = filter.ColorKeep, false // the bytes of the log, for another filter
	}
	if err := c.lookFor(&options, stdout, os.Getenv); err != nil {
		return exitUsage, err
	}
	var dumps *dumpList
	if c.dumps != "" {
		dumps = newDumpList(string(c.dumps), diag)
		options.DumpFile = dumps.add
	}
	words, patience := lastWords, patience
	switch {
	case c.follow.on:
		words, patience = 0, followPatience
	case slices.ContainsFunc(files, c.isPort):
		words = 0 // the producer does not end
	}
	s := &stream{
		out: stdout, diag: diag, stop: newStopper(cancel, words, patience), hints: c.output != outputMarkup,
		isPort: c.isPort, rate: c.rate(), announces: isTerminal(stderr),
	}
	reports := c.reports(sym, biases, maps, options.Color)
	engineOf := func(in *os.File, label string, regular bool, out io.Writer) engine {
		o := options
		o.Patience = c.wait.of(regular)
		o.Dialects.Whole = regular && !c.follow.on
		o.Diagnose = func(d filter.Diagnostic) {
			diag.printf("%s:%d:%d: %s", label, d.Line, d.Byte, d.Message)
		}
		if !c.explain { // which has the reason at the end
			o.Dialects.Refused = func(path string, reason error) { diag.printf("%s: --image %s: %v", label, path, reason) }
		}
		at := &arrival{in: in, label: label, batch: &batch{w: out}, add: s.unresolved.add,
			diagnose: func(s string) { diag.printf("%s: %s", label, oneLine(s)) },
		}
		if c.follow.on { // the end may be far away
			at.damaged = func(e *input.UnpackError) { diag.sum("%s: %v", label, e) }
		}
		if c.follow.on && c.output == outputJSON {
			at.members, _ = escape.AppendString([]byte(`"file":`), label)
			o.Members = func(dst []byte, _ int64) []byte { return append(append(dst, ','), at.members...) }
		}
		if page != nil && len(files) > 1 {
			page.Input(label)
		}
		at.options, at.filter = o, filter.New(at.batch, o)
		e := reports.engine(c.inputFormat(), at)
		e.counts = func() counts { return countsOf(at.filter) }
		e.end = func() {
			s.unresolved.add(e.counts())
			if stats := at.filter.Stats(); c.process.Regexp != nil && stats.Elements > 0 && stats.Keyed == 0 {
				diag.sum("%s: --process-key matches no line with markup, so all lines are those of one process", label)
			}
		}
		if dumps != nil {
			return dumps.behind(e)
		}
		return e
	}
	s.engine = func(in *os.File, label string, regular bool) engine { return engineOf(in, label, regular, out) }
	enlargePipe(stdout)

	if len(files) == 0 {
		files = []string{"-"}
		if isTerminal(stdin) && isTerminal(stderr) {
			diag.printf("reading from the terminal; end with Ctrl-D; --help prints help")
		}
	}
	var code int
	if c.follow.on {
		code = (&pursuit{stream: s, c: c, w: out, dumps: dumps, engine: engineOf, remindOf: func(sum counts) { s.printUnresolved(c, sym, sum) }}).follow(files)
	} else {
		code = s.files(files, stdin)
	}
	code = s.endPage(page, out, code)
	status.set("")
	s.report(c, sym)
	switch {
	case code != exitOK:
		return code, nil
	case dumps != nil && dumps.failed:
		return exitIO, nil
	case c.strict && s.unresolved.all().failed > 0:
		return exitStrict, nil
	}
	return exitOK, nil
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
		SymbolPaths: slices.Concat(c.symbolPaths, c.objects, c.imagePaths()),
		IDsFiles:    c.idsFiles,
		BuildIDDirs: c.trees,
		DebugDirs:   c.debugDirs,
		NoPaths:     c.noPaths,
		Client:      servers,

		NoDefaultDebugDirs: c.noDefaultDirs,

		NoIndex:    c.noIndex,
		MaxMemory:  int64(c.maxMemory),
		Symbolizer: symbolize.Options{DWP: string(c.dwp), NoDemangle: c.noDemangle, NoInlines: c.noInlines},
	}
}
