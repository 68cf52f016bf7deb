package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// Explain returns lines about each module of sum: why its addresses stayed unresolved, the places
// that were searched, and what to do. searched is set if all inputs were searched to their end.
func (s *Search) Explain(sum Counts, searched bool) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if searched && sum.Asked == 0 && sum.noCode.Frames == 0 {
		add("nothing to explain: no address of native code was found; symfilter help dialects lists the backtraces that are read; traces of Java, .NET, JavaScript and Python need their own tools; Apple's crash reports in JSON (.ips) need Xcode")
	}
	modules, outside := sum.sorted()
	for _, u := range modules {
		r := s.Opened.Symbolizer.Report(u.ID, u.Name)
		add("unresolved: %s, %s: %s", nameOf(u), wording.Count(u.Frames, "address", "addresses"), because(u, r))
		for _, a := range r.Attempts {
			add("  %s: %s", a.Where, a.Reason)
		}
		if next := s.next(u, r); next != "" {
			add("  next: %s", next)
		}
	}
	lines = append(lines, s.remedier(sum, true).unusedImages(modules)...)
	if outside > 0 {
		add("unresolved: %s outside the maps of all modules; is a module or mmap element missing from the log?", wording.Count(outside, "address", "addresses"))
	}
	return lines
}

// Summary returns a line about the unresolved addresses with a remedy, or "" if all addresses have
// names. With quick, it does not read dpkg's lists, which may take long on a slow disk.
func (s *Search) Summary(sum Counts, quick bool) string {
	if sum.Failed == 0 {
		return ""
	}
	modules, _ := sum.sorted()
	parts := append([]string{sum.String()}, s.remedier(sum, quick).remedies(modules)...)
	return strings.Join(parts, "; ") + "; symfilter --explain shows why"
}

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

func because(u symbolize.Unresolved, r symbolize.Report) string {
	outside, is := errors.AsType[*OutsideError](u.Err)
	missing, lacks := errors.AsType[PlaceError](u.Err)
	switch {
	case lacks && r.Fault == "":
		return missing.Error()
	case is && r.Fault == "":
		return fmt.Sprintf("0x%x is %v; the file is %s", outside.addr, outside, r.Path)
	case r.Path != "" && u.Err == nil && r.Fault == "":
		return fmt.Sprintf("not covered by any symbol of %s (%s)", r.Path, r.Holds)
	case r.Fault != "":
		return r.Fault
	case u.ID.IsZero() && isReason(u.Err):
		return u.Err.Error()
	case u.ID.IsZero():
		return "the log gives no build ID for this module"
	case errors.Is(u.Err, symbolize.ErrPending):
		return "the search for the debug file had not finished when the line was printed"
	case len(r.Attempts) == 0 && u.Err != nil:
		return u.Err.Error()
	}
	return "no debug file; looked for at:"
}

// isReason reports whether err is neither nil nor a *symbolize.NotFoundError.
func isReason(err error) bool {
	_, missing := errors.AsType[*symbolize.NotFoundError](err)
	return err != nil && !missing
}

// next returns what the user can do about an unresolved module, or "".
func (s *Search) next(u symbolize.Unresolved, r symbolize.Report) string {
	var missing *symbolize.NotFoundError
	var outside *OutsideError
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
		return "that file is stripped; " + s.elsewhere(u.ID)
	case r.Path != "":
		return ""
	case u.Candidate != "":
		return "add --image " + imageWord(u) + " if that file ran"
	case u.ID.IsZero() && isReason(u.Err):
		return ""
	case u.Name == dialect.KernelImage && u.ID.IsZero():
		return "give --image vmlinux"
	case u.Name == dialect.KernelImage:
		return "give --image vmlinux, or " + s.elsewhere(u.ID)
	case u.ID.IsZero():
		return "link the module with -Wl,--build-id: its build ID rules out debug files of other builds"
	case errors.As(u.Err, &missing) && missing.Err != nil && !s.Examining:
		return "see the errors above; symfilter doctor " + u.ID.String() + " searches again"
	case errors.As(u.Err, &missing) && missing.Err != nil:
		return "" // the attempts above already show the reason
	}
	if n := 2 * u.ID.Len(); n < usualID && u.Name == "" {
		return fmt.Sprintf("is %s only the beginning of a build ID, with %d hex digits instead of the usual 40? Otherwise %s", u.ID, n, s.elsewhere(u.ID))
	}
	return s.elsewhere(u.ID)
}

// usualID is the number of hex digits of the shortest build IDs that linkers make: xxHash, by lld.
const usualID = 16

// elsewhere returns advice about other sources of a debug file.
func (s *Search) elsewhere(id buildid.ID) string {
	const name = "name the file's folder with --symbol-path"
	switch {
	case s.NoServers != "":
		return name
	case len(s.URLs) == 0:
		return name + ", or a server in DEBUGINFOD_URLS"
	case s.Examining:
		return name
	}
	return name + "; symfilter doctor " + id.String() + " searches again"
}

// packageName names a package of a distribution, and the usual package of its debug symbols.
func packageName(p symbolize.Package) string {
	name := strings.TrimSpace(p.Type + " package " + p.Name + " " + p.Version)
	if debug := debugPackage(p.Type, p.Name); debug != "" {
		name += ", which are in " + debug
	}
	return name
}
