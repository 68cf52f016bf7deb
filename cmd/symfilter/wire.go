package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
)

// How long the lines of an input may wait for debug files, unless --wait says.
const (
	waitFile   = 90 * time.Second // nobody watches a file being read
	waitStream = 2 * time.Second  // a person does watch a pipe
	waitMinute = 10 * time.Second // in any minute of a pipe: its producer is held up
)

const (
	cacheShare = 16       // 1/16 of --max-memory is for rendered frames: the filter's own default at 512 MiB
	overhead   = 32 << 20 // bytes beside --max-memory that the garbage collector may let stand: the runtime and the lines at work
)

// filterAll filters files, or stdin, to stdout, and returns the exit code.
func filterAll(c *config, files []string, stdin, stdout, stderr *os.File) (int, error) {
	maps, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := c.check(); err != nil {
		return exitUsage, err
	}
	debug.SetMemoryLimit(int64(c.maxMemory) + overhead)
	diag := &diagnostics{w: stderr, quiet: c.quiet, verbose: c.verbose}
	sym := symbolize.New(symbolize.Options{
		Finders:    c.finders(diag),
		MaxMemory:  int64(c.maxMemory) / cacheShare * (cacheShare - 1),
		NoDemangle: c.noDemangle,
		NoInlines:  c.noInlines,
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := filter.Options{
		Symbolizer:      sym,
		Cache:           filter.NewCache(int64(c.maxMemory) / cacheShare),
		Context:         ctx,
		ProcessKey:      c.process.Regexp,
		OmitModuleLines: c.noModules,
		Paths:           filter.Paths{Basenames: c.basenames, Map: maps},
	}
	terminal := isTerminal(stdout)
	if c.output == outputJSON {
		options.Output, terminal = filter.JSON, false // objects are for programs
	}
	options.Color = c.color.mode(terminal, os.Getenv)
	options.Terminal = terminal && !c.raw
	var dumps *dumpList
	if c.dumps != "" {
		dumps = newDumpList(string(c.dumps), diag)
		options.DumpFile = dumps.add
	}
	s := &stream{out: stdout, diag: diag, stop: newStopper(cancel)}
	s.engine = func(label string, regular bool) engine {
		if c.output == outputMarkup {
			return engine{WriteCloser: passOn{stdout}}
		}
		o := options
		o.Wait, o.WaitPerMinute = c.wait.of(regular)
		o.Diagnose = func(d filter.Diagnostic) {
			diag.printf("%s:%d:%d: %s", label, d.Line, d.Byte, d.Message)
		}
		f := filter.New(stdout, o)
		e := engine{WriteCloser: f, flush: f.Flush, unfinished: f.Unfinished, end: func() { s.remember(f) }}
		if dumps != nil {
			return dumps.behind(e)
		}
		return e
	}
	enlargePipe(stdout)

	if len(files) == 0 {
		files = []string{"-"}
		if isTerminal(stdin) && isTerminal(stderr) {
			diag.printf("reading from the terminal; Ctrl-D ends, --help helps")
		}
	}
	code := s.files(files, stdin)
	s.report(c, sym)
	switch {
	case code != exitOK:
		return code, nil
	case dumps != nil && dumps.failed:
		return exitIO, nil
	case c.strict && s.unresolved() > 0:
		return exitStrict, nil
	}
	return exitOK, nil
}

// of returns how long the lines of an input may wait, one of them and those of
// a minute.
func (w waitFor) of(regular bool) (wait, perMinute time.Duration) {
	switch {
	case w.set:
		return w.Duration, 0
	case regular:
		return waitFile, 0
	}
	return waitStream, waitMinute
}

// passOn is the engine of --output=markup for a log of markup.
type passOn struct{ io.Writer }

func (passOn) Close() error { return nil }

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) (is bool) {
	control(f, func(fd uintptr) { is = term.IsTerminal(int(fd)) })
	return is
}

// control calls use with f's descriptor, which other processes may share: Fd
// would change its mode for all of them.
func control(f *os.File, use func(fd uintptr)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(use)
	}
}

// finders returns where debug files are looked for, in order: what was named
// for this run first, the system's place after it, the module's own file last.
func (c *config) finders(diag *diagnostics) (finders []symbolize.Finder) {
	paths := slices.Concat(c.symbolPaths, c.objects)
	c.warnOfMissing(diag)
	if len(paths) > 0 {
		finders = append(finders, buildid.NewSymbolPath(paths...))
	}
	for _, dir := range slices.Concat(c.trees, c.debugDirs) {
		finders = append(finders, buildid.NewTree(dir))
	}
	return append(finders, buildid.ModulePath{})
}

// warnOfMissing says which of the places that the user named are not there.
func (c *config) warnOfMissing(diag *diagnostics) {
	for _, flag := range []struct {
		name  string
		paths []string
	}{
		{"--symbol-path", c.symbolPaths},
		{"--obj", c.objects},
		{"--build-id-dir", c.trees},
		{"--debug-file-directory", c.debugDirs},
	} {
		for _, path := range flag.paths {
			if path == defaultDebugDir {
				continue
			}
			if _, err := os.Stat(path); err != nil {
				var pathErr *os.PathError
				if errors.As(err, &pathErr) {
					err = pathErr.Err
				}
				diag.printf("%s %s: %v; nothing will be found there", flag.name, path, err)
			}
		}
	}
}

// report prints what is wrong with debug files; for --verbose, the files in
// use; for --explain, the modules that stayed unresolved and where they were
// looked for.
func (s *stream) report(c *config, sym *symbolize.Symbolizer) {
	for _, r := range sym.Reports() {
		if r.Fault != "" {
			s.diag.printf("%s", r.Fault)
		}
		if r.Path != "" && c.verbose {
			s.diag.line("%s: using %s (%s)", r.ID, r.Path, r.Holds)
		}
	}
	s.diag.flush()
	if !c.explain {
		return
	}
	modules, outside := s.missing()
	for _, u := range modules {
		name := u.Name
		if !u.ID.IsZero() {
			name += " (BuildID=" + u.ID.String() + ")"
		}
		r := sym.Report(u.ID, u.Name)
		s.diag.line("unresolved: %s, %s: %s", name, count(u.Frames, "address", "addresses"), because(u, r))
		for _, a := range r.Attempts {
			s.diag.line("  %s: %s", a.Where, a.Said)
		}
	}
	if outside > 0 {
		s.diag.line("unresolved: %s in no module's maps; are all module and mmap elements of the log there?", count(outside, "address", "addresses"))
	}
}

// because says why a module stayed unresolved.
func because(u filter.Unresolved, r symbolize.Report) string {
	switch {
	case r.Path != "" && u.Err == nil:
		return fmt.Sprintf("no symbol covers them in %s (%s)", r.Path, r.Holds)
	case r.Fault != "":
		return r.Fault
	case u.ID.IsZero():
		return "the log gives no build ID for it"
	case errors.Is(u.Err, symbolize.ErrPending):
		return "its debug file was still being looked for; a longer --wait gives it more time"
	case len(r.Attempts) == 0 && u.Err != nil:
		return u.Err.Error()
	}
	return "no debug file; looked for at:"
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// missing returns what stayed unresolved in all inputs, the most frames first.
func (s *stream) missing() (modules []filter.Unresolved, outside int64) {
	modules = slices.Clone(s.modules)
	slices.SortFunc(modules, func(a, b filter.Unresolved) int {
		switch {
		case a.Frames != b.Frames:
			return int(min(max(b.Frames-a.Frames, -1), 1))
		case a.Name != b.Name:
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	outside = s.elements
	for _, u := range modules {
		outside -= u.Frames
	}
	return modules, outside
}
