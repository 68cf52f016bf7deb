package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/symbolize"
)

type sourceFlags struct {
	lines     sourceLines
	roots     []string // --source-root
	url       string   // --source-url
	hyperlink string
}

const (
	usualSourceLines = "3"  // value of --source without a number
	maxSourceLines   = 1000 // before and after a line

	sourceShare = 8        // 1/8 of --max-memory is for source files
	mostSources = 48 << 20 // bytes of source files in memory: some 2,000 files of usual size
)

// A sourceLines is the value of --source. on is set if source lines are printed. n is the number of
// lines before and after the line of a frame.
type sourceLines struct {
	on bool
	n  int
}

func (l *sourceLines) Set(s string) error {
	if on, err := strconv.ParseBool(s); err == nil && len(s) > 1 { // 0 and 1 are numbers
		if s = usualSourceLines; !on {
			*l = sourceLines{}
			return nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxSourceLines {
		return errors.New("not a number of lines from 0 to " + strconv.Itoa(maxSourceLines))
	}
	*l = sourceLines{true, n}
	return nil
}

// A sourceText finds source lines and makes links.
type sourceText struct {
	finder *source.Finder // nil: no source lines
	linker *source.Linker // nil: no links
	roots  source.Roots
}

// sources returns the sourceText for the flags. Its errors are usage errors. live is set if an
// input is not a file that is read to its end. Source lines then wait less for files and servers,
// unless --wait is given.
func (c *config) sources(sym *symbolize.Symbolizer, servers *debuginfod.Client, maps []buildid.PrefixMap, live bool, diag *diagnostics) (t *sourceText, err error) {
	t = &sourceText{}
	f := &c.source
	if !f.lines.on && f.url == "" {
		return t, nil
	}
	template, err := source.ParseTemplate(f.url, firstServer(servers))
	if err != nil {
		return nil, usageError{errors.New("--source-url: " + err.Error())}
	}
	if t.roots, err = source.OpenRoots(f.roots); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			diag.sum("--source-root: %s", line)
		}
	}
	if template != nil {
		t.linker = &source.Linker{Template: template, Roots: t.roots, PrefixMap: maps}
	}
	if !f.lines.on {
		return t, nil
	}
	patience := c.wait.of(!live)
	o := source.Options{
		Symbolizer: sym,
		Roots:      t.roots,
		PrefixMap:  maps,
		Patience:   patience.Servers,
		PerMinute:  patience.PerMinute,
		MaxMemory:  min(int64(c.maxMemory)/sourceShare, mostSources),
		Around:     f.lines.n,
		Notify:     func(message string) { diag.sum("%s", message) },
	}
	if servers != nil {
		o.Server = servers
	}
	if c.verbose || c.explain {
		o.Explain = func(message string) { diag.line("source of %s", message) }
	}
	t.finder = source.NewFinder(o)
	return t, nil
}

// firstServer returns the URL of the first server that may be asked, or "".
func firstServer(servers *debuginfod.Client) string {
	if servers == nil {
		return ""
	}
	all := servers.Servers()
	i := slices.IndexFunc(all, func(s debuginfod.Server) bool { return s.Refused == "" })
	if i < 0 {
		return ""
	}
	return all[i].URL
}

// close cancels requests for source files, and closes the roots.
func (t *sourceText) close() {
	if t.finder != nil {
		t.finder.Close()
	}
	t.roots.Close()
}

// apply sets the options of a filter. links is set if its text may have hyperlinks.
func (t *sourceText) apply(o *filter.Options, links bool) {
	if t.finder != nil {
		o.Paths.Source = t.finder.Snippet
	}
	if t.linker != nil {
		o.Paths.Link, o.Paths.Hyperlinks = t.linker.Append, links
	}
}

// hyperlinks reports whether text has links: by the flag, or on a terminal with colours.
func (f *sourceFlags) hyperlinks(terminal bool, color filter.Color, getenv func(string) string) bool {
	switch f.hyperlink {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && color == filter.ColorAlways && getenv("TERM") != "dumb"
}
