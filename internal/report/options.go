package report

import (
	"context"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Options are the options that all readers of reports share. The zero value leaves every frame as
// it is in the report, and waits for nothing.
type Options struct {
	// Symbolizer resolves the frames; if it is nil, none is resolved. For files without a build ID
	// its finders must include [Files].
	Symbolizer *symbolize.Symbolizer

	// Elements is for the readers' NewMarkup: every frame in a file with a build ID becomes an
	// element, for another program to resolve. No other frame becomes one.
	Elements bool

	// Sysroot is the folder that holds the files named by the report, if not the root folder.
	// PrefixMap replaces the first prefix that matches the name of a file; the result is then the
	// path, without Sysroot. Both apply to object files and to source files. Basenames shows source
	// files without their folders.
	Sysroot   string
	PrefixMap []buildid.PrefixMap
	Basenames bool

	// NoPaths opens no file by a name in the report: frames without a name there remain so.
	NoPaths bool

	// Wait is how long frames may wait for one debug file, from the first lookup or Prefetch of its
	// object. Files that a server hangs on, or that are all searched for at once, share one wait;
	// waits for answers that come one after the other add up: see [Patience]. Context ends all
	// waiting; nil never does.
	Wait    time.Duration
	Context context.Context

	// Patience, if not nil, takes the place of Wait and Context: that of the filter that takes the
	// elements of NewMarkup, so that the two do not wait one after the other.
	Patience *Patience

	// Members are members that each JSON object gets, with commas between them, for example
	// "file":"name".
	Members []byte

	// Diagnose receives diagnostics, each of one line: defects of the report, and the reasons why
	// frames of an object remain unresolved. Named receives, once at the end, the number of frames
	// that got a name by symbols; after it, Unresolved receives the unresolved frames by object.
	// Elements of NewMarkup are counted by their filter. Each may be nil.
	Diagnose   func(string)
	Named      func(int64)
	Unresolved func([]Unresolved)
}

// Place returns the path of an object file that has this name in a report.
func (o *Options) Place(name string) string {
	return buildid.PrefixMaps(o.PrefixMap).Place(name, o.Sysroot)
}

// ShownFile returns the name of a source file as the report shows it: with the prefix map and
// Basenames applied.
func (o *Options) ShownFile(name string) string {
	name, _ = buildid.PrefixMaps(o.PrefixMap).Replace(name)
	if o.Basenames {
		name = name[strings.LastIndexAny(name, `/\`)+1:]
	}
	return name
}

// Report passes a diagnostic to Diagnose, if that is set.
func (o *Options) Report(message string) {
	if o.Diagnose != nil {
		o.Diagnose(message)
	}
}
