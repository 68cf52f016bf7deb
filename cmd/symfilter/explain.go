package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// report prints the faults of debug files; with --verbose the files in use; with that or --explain the
// proofs of answers; then what stayed unresolved: in one line or, with --explain, with the places that were searched for each module.
func (s *stream) report(c *config, sym *symbolize.Symbolizer) {
	for _, r := range sym.Reports() {
		if r.Fault != "" {
			s.diag.printf("%s", r.Fault)
		}
		if r.Path != "" && c.verbose {
			s.diag.line("%s: using %s (%s)", r.ID, r.Path, r.Holds)
		}
	}
	if c.verbose || c.explain {
		all := s.unresolved.all()
		s.printProofs(all.proofs)
		if w := all.noCode; w.Frames > 0 {
			s.diag.line("left as logged: %s, such as 0x%x: %v", wording.Count(w.Frames, "address", "addresses"), w.Addr, judge.ErrNoCode)
		}
	}
	s.diag.flush()
	if !c.explain {
		if !s.unread && !s.unwritten {
			s.printUnresolved(c, sym, s.unresolved.all())
		}
		return
	}
	sum := s.unresolved.all()
	if s.searched && sum.asked == 0 && sum.noCode.Frames == 0 && !s.unread {
		s.diag.line("nothing to explain: no address of native code was found; traces of Java, .NET, JavaScript and Python have names, or need tools of their runtimes; symfilter help dialects lists the backtraces that are read")
	}
	modules, outside := sum.sorted()
	for _, u := range modules {
		name := nameOf(u)
		r := sym.Report(u.ID, u.Name)
		s.diag.line("unresolved: %s, %s: %s", name, wording.Count(u.Frames, "address", "addresses"), because(u, r))
		for _, a := range r.Attempts {
			s.diag.line("  %s: %s", a.Where, a.Reason)
		}
		if next := c.next(u, r); next != "" {
			s.diag.line("  next: %s", next)
		}
	}
	for _, unused := range c.remedier(sym, sum, true).unusedImages(modules) {
		s.diag.line("%s", unused)
	}
	if outside > 0 {
		s.diag.line("unresolved: %s in the maps of no module; is a module or mmap element missing in the log?", wording.Count(outside, "address", "addresses"))
	}
}

// printRests prints the proofs of the answers for raw backtraces.
func (s *stream) printProofs(r filter.Proofs) {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{r.BuildID, "on the build ID in the log"},
		{r.Symbol, "on a symbol of the file"},
		{r.Call, "on calls before the return addresses"},
		{r.Other, "on other bytes of the file"},
		{r.Path, "on the path, of a file that other frames prove or --image names"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) > 0 {
		s.diag.line("frames of backtraces rest: %s", strings.Join(parts, ", "))
	}
}

// nameOf returns how a module is called in reports.
func nameOf(u symbolize.Unresolved) string {
	switch {
	case u.Name == "" && u.ID.IsZero():
		return "addresses without a module"
	case u.ID.IsZero():
		return u.Name
	case u.Name == "":
		return "BuildID=" + u.ID.String()
	}
	return u.Name + " (BuildID=" + u.ID.String() + ")"
}

// printUnresolved prints the line about the addresses that stayed unresolved, if there are any, and
// what would help.
func (s *stream) printUnresolved(c *config, sym *symbolize.Symbolizer, sum counts) {
	if sum.failed == 0 || c.quiet || c.output == outputMarkup {
		return
	}
	r := c.remedier(sym, sum, s.stop.signal() != 0) // after a signal the process must end within a second, however slow the disk is
	modules, _ := sum.sorted()
	parts := append([]string{sum.String()}, r.remedies(modules)...)
	s.diag.line("%s; symfilter --explain shows why", strings.Join(parts, "; "))
}

// because returns why a module stayed unresolved.
func because(u symbolize.Unresolved, r symbolize.Report) string {
	outside, is := errors.AsType[*outsideError](u.Err)
	switch {
	case is && r.Fault == "":
		return fmt.Sprintf("0x%x is %v; that is %s", outside.addr, outside, r.Path)
	case r.Path != "" && u.Err == nil && r.Fault == "":
		return fmt.Sprintf("not covered by any symbol of %s (%s)", r.Path, r.Holds)
	case r.Fault != "":
		return r.Fault
	case u.ID.IsZero() && isReason(u.Err):
		return u.Err.Error()
	case u.ID.IsZero():
		return "the log gives no build ID for this module"
	case errors.Is(u.Err, symbolize.ErrPending):
		return "the search for its debug file had not finished when the line was printed"
	case len(r.Attempts) == 0 && u.Err != nil:
		return u.Err.Error()
	}
	return "no debug file; looked for at:"
}

// isReason reports whether err says more than that no finder has a file.
func isReason(err error) bool {
	_, missing := errors.AsType[*symbolize.NotFoundError](err)
	return err != nil && !missing
}

// next returns what the user can do about a module that stayed unresolved, or an empty string.
func (c *config) next(u symbolize.Unresolved, r symbolize.Report) string {
	var missing *symbolize.NotFoundError
	var outside *outsideError
	switch {
	case errors.As(u.Err, &outside):
		return outside.next()
	case errors.Is(u.Err, symbolize.ErrPending):
		return "wait longer: --wait 90s"
	case r.Fault != "":
		return ""
	case r.Path != "" && r.Holds < symbolize.DebugInfo && r.Package.Name != "":
		return "install the debug symbols of " + packageName(r.Package)
	case r.Path != "" && r.Holds < symbolize.DebugInfo:
		return "that file is stripped; " + c.elsewhere(u.ID)
	case r.Path != "":
		return ""
	case u.Candidate != "":
		return "add --image " + imageWord(u) + " if that file ran"
	case u.ID.IsZero() && isReason(u.Err):
		return ""
	case u.Name == dialect.KernelImage && u.ID.IsZero():
		return "give --image vmlinux"
	case u.Name == dialect.KernelImage:
		return "give --image vmlinux, or " + c.elsewhere(u.ID)
	case u.ID.IsZero():
		return "link the module with -Wl,--build-id, so that debug files of other builds can be ruled out"
	case errors.As(u.Err, &missing) && missing.Err != nil && !c.examining:
		return "see the errors above; symfilter doctor " + u.ID.String() + " searches again"
	case errors.As(u.Err, &missing) && missing.Err != nil:
		return "" // the attempts above show it
	}
	if n := 2 * u.ID.Len(); n < usualID && u.Name == "" {
		return fmt.Sprintf("is %s the beginning of a build ID? It has %d hex digits, and most have 40; otherwise %s", u.ID, n, c.elsewhere(u.ID))
	}
	return c.elsewhere(u.ID)
}

// usualID is the number of hex digits of the shortest build IDs that linkers make: xxHash, by lld.
const usualID = 16

// elsewhere returns from where else a debug file may come.
func (c *config) elsewhere(id buildid.ID) string {
	const name = "name the folder that holds the file with --symbol-path"
	switch {
	case c.offline || c.noServers:
		return name
	case len(c.urls) == 0:
		return name + ", or a server in DEBUGINFOD_URLS"
	case c.examining:
		return name
	}
	return name + "; symfilter doctor " + id.String() + " searches again"
}

// packageName names a package of a distribution, and the usual name of the one
// with its debug symbols.
func packageName(p symbolize.Package) string {
	name := strings.TrimSpace(p.Type + " package " + p.Name + " " + p.Version)
	if debug := debugPackage(p.Type, p.Name); debug != "" {
		name += ", which are in " + debug
	}
	return name
}
