package doctor

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
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// patienceOfDoctor bounds the time for all servers, and for all folders, since a person waits.
const patienceOfDoctor = 15 * time.Second

// An Examination checks places, and prints for each whether it can provide debug files.
type Examination struct {
	*Search
	W    io.Writer
	Wait time.Duration // longest wait for debug files
	Bad  int           // number of problems found
}

func (x *Examination) head(title string) { fmt.Fprintln(x.W, title) }

func (x *Examination) good(format string, args ...any) { x.line("ok", format, args...) }
func (x *Examination) none(format string, args ...any) { x.line("-", format, args...) }

func (x *Examination) wrong(format string, args ...any) {
	x.Bad++
	x.line("BAD", format, args...)
}

func (x *Examination) line(verdict, format string, args ...any) {
	fmt.Fprintf(x.W, "  %-4s %s\n", verdict, wording.Line(fmt.Sprintf(format, args...)))
}

// A clientState has the methods of a Client that only this module may call: see
// [access.Debuginfod].
type clientState interface {
	CacheInfo() access.CacheInfo
	Probe(ctx context.Context, server string, id buildid.ID) access.ProbeResult
	Remembered() int
}

func stateOf(c *debuginfod.Client) clientState { return access.Debuginfod(c).(clientState) }

// CacheOf returns the state of a client's cache.
func CacheOf(c *debuginfod.Client) access.CacheInfo { return stateOf(c).CacheInfo() }

// Cache examines debuginfod's cache.
func (x *Examination) Cache(client *debuginfod.Client) {
	x.head("cache of debuginfod")
	info := CacheOf(client)
	for _, problem := range info.Problems {
		if info.Dir == "" {
			break // reported below, and harmless
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
			say("%s: does not exist and cannot be created: %v; set DEBUGINFOD_CACHE_PATH to another folder", info.Dir, wording.Cause(err))
			return
		}
		x.none("%s: does not exist yet; the first download creates it", info.Dir)
	case len(info.Problems) == 0:
		x.good("%s: %s, %s; %s known to be missing", info.Dir, wording.Count(int64(info.Files), "file", "files"), fmt.Sprintf("%.0f MB", float64(info.Size)/1e6), wording.Count(int64(info.Misses), "file", "files"))
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

// Sandbox reports the restrictions of the process. whole is set if no restriction is missing. A
// missing restriction is not a fault.
func (x *Examination) Sandbox(restrictions string, whole bool) {
	x.head("sandbox")
	if whole {
		x.good("%s", restrictions)
	} else {
		x.none("%s", restrictions)
	}
}

// Servers asks all servers at once for the file of id. If id is zero, it asks for a file that no
// server has.
func (x *Examination) Servers(ctx context.Context, client *debuginfod.Client, id buildid.ID) {
	x.head("servers")
	all, probes := client.Servers(), stateOf(client)
	switch {
	case x.NoServers != "":
		x.none("no server is asked: %s", x.NoServers)
	case len(all) == 0:
		x.none("no server is known: set DEBUGINFOD_URLS or --debuginfod-urls")
	}
	ctx, cancel := context.WithTimeout(ctx, patienceOfDoctor)
	defer cancel()
	results := make([]access.ProbeResult, len(all))
	var asked sync.WaitGroup
	for i, server := range all {
		asked.Go(func() { results[i] = probes.Probe(ctx, server.URL, id) })
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

// CoreFile reports that the subject is a core file.
func (x *Examination) CoreFile(about *Subject) {
	x.head("file " + about.Word)
	x.wrong("is a core file: use gdb")
}

// Program examines the ELF file of the subject alone. It reports the file's build ID and faults,
// and whether the file has debug information.
func (x *Examination) Program(ctx context.Context, about *Subject) {
	x.head("file " + about.Word)
	if about.ID.IsZero() {
		x.wrong("has no build ID, by which debug files are found; link it with -Wl,--build-id")
	} else {
		x.good("has build ID %s", about.ID)
	}
	alone := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.ModulePath{}, report.Files{}}})
	defer alone.Close()
	if _, err := alone.Ask(ctx, nil, about.Location(0), symbolize.Policy{}); err != nil {
		x.wrong("cannot be used: %v", err)
		return
	}
	switch r := alone.Report(about.ID, about.Path); {
	case r.Fault != "":
		x.wrong("%s", r.Fault)
	case r.Holds == symbolize.DebugInfo:
		x.good("holds %s", r.Holds)
	default:
		x.none("holds %s", r.Holds)
	}
}

// Find searches for the file of a program as if it were a module of a log.
func (x *Examination) Find(ctx context.Context, about *Subject) {
	if about.ID.IsZero() {
		x.head("debug file")
	} else {
		x.head("build ID " + about.ID.String())
	}
	sym := x.Opened.Symbolizer
	ctx, cancel := context.WithTimeout(ctx, x.Wait)
	defer cancel()
	_, err := sym.Ask(ctx, nil, about.Location(0), symbolize.Policy{})
	r := sym.Report(about.ID, about.Path)
	if r.Path != "" && r.Holds == symbolize.DebugInfo && r.Fault == "" {
		x.good("%s holds %s", r.Path, r.Holds)
		return
	}
	u := about.Unresolved(1, err)
	switch {
	case r.Fault != "":
		x.wrong("%s", r.Fault)
	case r.Path != "":
		x.wrong("%s holds %s; no better file found at:", r.Path, r.Holds)
	case errors.Is(err, symbolize.ErrPending):
		x.wrong("search not finished after %v", x.Wait)
	default:
		x.wrong("not found at:")
	}
	for _, a := range r.Attempts {
		fmt.Fprintf(x.W, "       %s\n", wording.Line(a.Where+": "+a.Reason))
	}
	if next := x.next(u, r); next != "" {
		fmt.Fprintf(x.W, "       next: %s\n", wording.Line(next))
	}
}

// Folders examines the places that are searched for debug files.
func (x *Examination) Folders(ctx context.Context) {
	x.head("folders and files")
	ctx, cancel := context.WithTimeout(ctx, patienceOfDoctor)
	defer cancel()
	scanned := x.Scanned()
	paths := buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: scanned})
	defer paths.Close()
	roots, slow := rootsOf(ctx, paths)
	for i, p := range x.Places() {
		err := p.problem()
		switch {
		case p.Flag == systemPlace && (errors.Is(err, os.ErrNotExist) || err == nil && p.contents(ctx) == errNoTree):
			x.none("%s: no debug packages are installed", p.Path)
		case err != nil:
			x.wrong("%s (%s): %v", p.Path, p.Flag, wording.Cause(err))
		case i < len(roots):
			x.root(p, &roots[i])
		case i < len(scanned):
			x.wrong("%s (%s): not examined: %v", p.Path, p.Flag, slow)
		default:
			if err := p.contents(ctx); err != nil {
				x.wrong("%s (%s) %v", p.Path, p.Flag, err)
			} else {
				x.good("%s (%s)", p.Path, p.Flag)
			}
		}
	}
}

func (x *Examination) root(p Place, r *root) {
	problems := rootProblems(r)
	if p.Flag == imageFlag { // an image needs no build ID
		problems = nil
	}
	if !r.ID.IsZero() {
		if err := cutOff(r.Path); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for _, problem := range problems {
		x.wrong("%s (%s) %s", p.Path, p.Flag, problem)
	}
	switch {
	case len(problems) > 0:
	case !r.ID.IsZero():
		x.good("%s (%s) has build ID %s", p.Path, p.Flag, r.ID)
	case p.Flag == imageFlag:
		x.good("%s (%s)", p.Path, p.Flag)
	default:
		x.good("%s (%s) holds %s", p.Path, p.Flag, wording.Count(int64(r.Files), "ELF file with a build ID", "ELF files with build IDs"))
	}
}
