package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// patienceOfDoctor is how long a place may take to answer while a person waits.
const patienceOfDoctor = 15 * time.Second

// An examination prints for each place whether debug files can be found there.
type examination struct {
	*session
	w   io.Writer
	bad int // places that are out of order
}

func (x *examination) head(title string) { fmt.Fprintln(x.w, title) }

func (x *examination) good(format string, args ...any) { x.line("ok", format, args...) }
func (x *examination) none(format string, args ...any) { x.line("-", format, args...) }

func (x *examination) wrong(format string, args ...any) {
	x.bad++
	x.line("BAD", format, args...)
}

func (x *examination) line(verdict, format string, args ...any) {
	fmt.Fprintf(x.w, "  %-4s %s\n", verdict, wording.Line(fmt.Sprintf(format, args...)))
}

// runDoctor examines the places where debug files are looked for and, if a build ID, an ELF file or
// a log is given, looks for its debug files. The exit code is 1 if a place is out of order, or a
// debug file was not found.
func runDoctor(c *config, args []string, std standard) (int, error) {
	ctx := context.Background()
	var about subject
	if len(args) > 0 {
		var err error
		if about, err = subjectOf(args[0]); err != nil {
			return exitIO, err
		}
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	c.examining, c.quiet = true, true // the examination itself reports
	s, err := c.session(std)
	if err != nil {
		return exitUsage, err
	}
	defer s.close()

	x := &examination{session: s, w: std.text}
	x.cache()
	if about.word != "" && len(c.urls) > 0 {
		sandbox.MakeFolder(c.downloads) // not possible once the doctor is confined
	}
	x.sandbox(args)
	if err := about.examine(); err != nil {
		return exitIO, err
	}
	x.folders(ctx)
	x.askServers(ctx, about.id)
	switch {
	case about.core:
		x.head("file " + about.word)
		x.wrong("is a core file: gdb reads it")
	case about.elf:
		x.program(ctx, &about)
		x.find(ctx, &about)
	case !about.id.IsZero():
		x.find(ctx, &about)
	case about.word != "":
		if err := x.log(ctx, &about, std.in); err != nil {
			return exitIO, err
		}
	}
	if x.bad > 0 {
		return exitIO, nil
	}
	return exitOK, nil
}

// cache examines debuginfod's cache.
func (x *examination) cache() {
	client := x.session.servers
	x.head("cache of debuginfod")
	info := client.Cache().Info()
	for _, problem := range info.Problems {
		if info.Dir == "" {
			break // reported below, and not a fault
		}
		x.wrong("%s: %s", info.Dir, problem)
	}
	switch {
	case info.Dir == "":
		x.none("no folder: neither HOME nor DEBUGINFOD_CACHE_PATH is set")
	case !info.Exists:
		if err := creatable(info.Dir); err != nil {
			say := x.none
			if len(client.Servers()) > 0 {
				say = x.wrong
			}
			say("%s: does not exist and cannot be made: %v; set DEBUGINFOD_CACHE_PATH to another folder", info.Dir, wording.Cause(err))
			return
		}
		x.none("%s: does not exist yet; the first download makes it", info.Dir)
	case len(info.Problems) == 0:
		x.good("%s: %s, %s; %s known to be missing", info.Dir, wording.Count(int64(info.Files), "file", "files"), megabytes(info.Size), wording.Count(int64(info.Misses), "file", "files"))
	}
}

// creatable returns why the missing folder dir cannot be made, or nil.
func creatable(dir string) error {
	for {
		probe, err := os.MkdirTemp(filepath.Dir(dir), ".symfilter-doctor-")
		if err == nil {
			return os.Remove(probe)
		}
		parent := filepath.Dir(dir)
		if _, there := os.Lstat(parent); there == nil || parent == dir {
			return err
		}
		dir = parent
	}
}

// sandbox confines the doctor as it would confine a run, and reports the restrictions in force. A
// restriction that this system does not have is not a fault.
func (x *examination) sandbox(files []string) {
	x.head("sandbox")
	s := x.c.confine(x.diag, files, false)
	if len(s.Missing) > 0 {
		x.none("%s", s)
	} else {
		x.good("%s", s)
	}
}

// askServers examines all servers at once: each is asked for the file of id or, if id is zero, for
// a file that no server has.
func (x *examination) askServers(ctx context.Context, id buildid.ID) {
	c, client := x.c, x.session.servers
	x.head("servers")
	all := client.Servers()
	switch {
	case c.offline:
		x.none("no server is asked: --offline")
	case c.noServers:
		x.none("no server is asked: --no-debuginfod")
	case len(all) == 0:
		x.none("no server is known: set DEBUGINFOD_URLS or --debuginfod-urls")
	}
	ctx, cancel := context.WithTimeout(ctx, patienceOfDoctor)
	defer cancel()
	results := make([]debuginfod.ProbeResult, len(all))
	var asked sync.WaitGroup
	for i, server := range all {
		asked.Go(func() { results[i] = client.Probe(ctx, server.URL, id) })
	}
	asked.Wait()
	for _, r := range results {
		if took := r.Took.Round(time.Millisecond); r.Works {
			x.good("%s: answered in %v: %s", r.Server, took, r.Answer)
		} else {
			x.wrong("%s: %s", r.Server, r.Answer)
		}
	}
}

// program reports what the ELF file itself holds.
func (x *examination) program(ctx context.Context, about *subject) {
	x.head("file " + about.word)
	if about.id.IsZero() {
		x.wrong("has no build ID, by which debug files are found; link it with -Wl,--build-id")
	} else {
		x.good("has build ID %s", about.id)
	}
	alone := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.ModulePath{}, report.Files{}}})
	defer alone.Close()
	if _, err := alone.Ask(ctx, nil, about.location(0), symbolize.Policy{}); err != nil {
		x.wrong("cannot be used: %v", err)
		return
	}
	switch r := alone.Report(about.id, about.path); {
	case r.Fault != "":
		x.wrong("%s", r.Fault)
	case r.Holds == symbolize.DebugInfo:
		x.good("holds %s", r.Holds)
	default:
		x.none("holds %s", r.Holds)
	}
}

// find searches for the file of a program as for a module of a log.
func (x *examination) find(ctx context.Context, about *subject) {
	c := x.c
	if about.id.IsZero() {
		x.head("debug file")
	} else {
		x.head("build ID " + about.id.String())
	}
	if err := x.openSymbols(); err != nil {
		x.wrong("%v", err)
		return
	}
	sym := x.Symbolizer
	ctx, cancel := context.WithTimeout(ctx, max(waitFile, c.wait.Duration))
	defer cancel()
	_, err := sym.Ask(ctx, nil, about.location(0), symbolize.Policy{})
	r := sym.Report(about.id, about.path)
	if r.Path != "" && r.Holds == symbolize.DebugInfo && r.Fault == "" {
		x.good("%s holds %s", r.Path, r.Holds)
		return
	}
	u := about.unresolved(1, err)
	switch {
	case r.Fault != "":
		x.wrong("%s", r.Fault)
	case r.Path != "":
		x.wrong("%s holds %s; no better file found at:", r.Path, r.Holds)
	case errors.Is(err, symbolize.ErrPending):
		x.wrong("search not finished after %v", max(waitFile, c.wait.Duration))
	default:
		x.wrong("not found at:")
	}
	for _, a := range r.Attempts {
		fmt.Fprintf(x.w, "       %s\n", wording.Line(a.Where+": "+a.Reason))
	}
	if next := c.next(u, r); next != "" {
		fmt.Fprintf(x.w, "       next: %s\n", wording.Line(next))
	}
}
