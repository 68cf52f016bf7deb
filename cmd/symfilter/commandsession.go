package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// closeWait bounds the wait for background work at the end of a run.
const closeWait = time.Second

// A session is the state of a command that looks up addresses: messages, servers, symbols, sandbox
// and memory.
type session struct {
	*symfilter.Opened
	c    *config
	diag *diagnostics
	// silent with --quiet, or if standard error is not a terminal
	status  *statusLine
	servers *debuginfod.Client
}

// session starts a session without symbols. The caller must close the session.
func (c *config) session(std standard) (*session, error) {
	s := &session{c: c, status: &statusLine{}}
	if isTerminal(std.err) && !c.quiet {
		s.status.w = std.err
	}
	s.diag = &diagnostics{w: besideStatus{std.err, s.status, false}, quiet: c.quiet, verbose: c.verbose}
	var err error
	s.servers, err = c.client(os.Getenv, s.diag, s.status)
	return s, err
}

// open confines the process, bounds its memory, and opens the symbols. files are the paths on the
// command line that the run opens later.
func (s *session) open(files []string) error {
	s.c.confine(s.diag, files, true)
	return s.openSymbols()
}

// openSymbols bounds the memory of the process, and opens the symbols.
func (s *session) openSymbols() (err error) {
	c := s.c
	symbols := c.symbols(s.servers)
	symbols.Symbolizer.OffHeap = startup.LimitHeap(int64(c.maxMemory))
	if c.follow.on {
		startup.TuneGarbage(startup.GarbageMedium)
		// report faults at once: the report at the end may come much later
		symbols.Symbolizer.Notify = func(msg string) { s.diag.printf("%s", wording.Line(msg)) }
	} else {
		startup.TuneGarbage(startup.GarbageSmall)
	}
	s.Opened, err = symbols.Open()
	return err
}

// filterOptions returns the options that all filters of a session share. Filters stop waiting when
// ctx ends. The doctor prints no log, and does not use these options.
func (s *session) filterOptions(ctx context.Context, maps []buildid.PrefixMap) (filter.Options, error) {
	o := filter.Options{
		Symbolizer:  s.Symbolizer,
		Cache:       s.Cache,
		Context:     ctx,
		ProcessKey:  s.c.process.Regexp,
		Paths:       filter.Paths{Basenames: s.c.basenames, Map: maps},
		ModuleLines: s.c.modules(),
	}
	var err error
	o.Dialects, err = s.c.dialects(false)
	o.Dialects.Complete = s.Complete
	return o, err
}

// close closes the symbols, which removes half-written files. It also closes the finders, which
// store lists of folders for the next run.
func (s *session) close() {
	if s.Opened != nil {
		closeSoon(s.Opened)
	}
	s.c.close()
}

// close closes the finders. Errors are harmless: the next run reads folders again.
func (c *config) close() {
	for _, closer := range c.closers {
		closer.Close()
	}
}

// closeSoon closes the symbols. It waits at most closeWait, since a folder may hang.
func closeSoon(symbols *symfilter.Opened) {
	done := make(chan struct{})
	go func() { defer close(done); symbols.Close() }()
	select {
	case <-done:
	case <-time.After(closeWait):
	}
}

// search describes where the run searches for debug files. It opens nothing.
func (c *config) search() *doctor.Search {
	_, folders := c.imageWords()
	s := &doctor.Search{
		SymbolPaths: slices.Concat(c.symbolPaths, folders),
		Objects:     c.objects,
		Images:      c.images(),
		BuildIDDirs: c.trees,
		IDsFiles:    c.idsFiles,
		DebugDirs:   c.debugDirs,
		DWP:         string(c.dwp),
		Sysroot:     c.sysroot,
		NoPaths:     c.noPaths,
		URLs:        c.urls,
		Examining:   c.examining,

		NoDefaultDebugDirs: c.noDefaultDirs,
	}
	switch {
	case c.offline:
		s.NoServers = "--offline"
	case c.noServers:
		s.NoServers = "--no-debuginfod"
	}
	return s
}

// search describes where the session searches for debug files, including the opened symbols.
func (s *session) search() *doctor.Search {
	search := s.c.search()
	search.Opened = s.Opened
	return search
}

// warn reports files and folders that flags name, but that cannot hold debug files. fromStdin is
// set if the command line names no input.
func (s *session) warn(fromStdin bool) {
	for _, message := range s.search().Warnings(fromStdin) {
		s.diag.printf("%s", message)
	}
}

// report prints the faults of debug files. --verbose adds the files in use. --explain adds the
// unresolved addresses with reasons. Either flag adds the proofs of the answers. searched is set if
// the inputs were read to their end.
func (s *session) report(sum doctor.Counts, searched bool) {
	for _, r := range s.Symbolizer.Reports() {
		if r.Fault != "" {
			s.diag.printf("%s", r.Fault)
		}
		if r.Path != "" && s.c.verbose {
			s.diag.line("%s: using %s (%s)", r.ID, r.Path, r.Holds)
		}
	}
	if s.c.verbose || s.c.explain {
		s.diag.all(sum.Proofs())
	}
	s.diag.flush()
	if s.c.explain {
		s.diag.all(s.search().Explain(sum, searched))
	}
}

// summarize prints lines about addresses without a source line or a name, if any. If quick is set,
// it does not read the package lists of dpkg, which may take long.
func (s *session) summarize(sum doctor.Counts, quick bool) {
	if s.c.quiet || s.c.output == outputMarkup {
		return // open no files of --image: the run may have to end at once
	}
	if line := sum.Early(); line != "" {
		s.diag.line("%s", line)
	}
	if sum.Failed == 0 {
		return
	}
	if line := s.search().Summary(sum, quick); line != "" {
		s.diag.line("%s", line)
	}
}

// symbols returns where to look for debug files: in files and folders named by flags, the system's
// folder, the module's own path, and the servers, in this order.
func (c *config) symbols(servers *debuginfod.Client) symfilter.Symbols {
	return symfilter.Symbols{
		SymbolPaths: c.search().Scanned(),
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
