package report

import (
	"context"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Options are the options that all readers of reports have. The zero value leaves every frame as
// the report has it, and waits for nothing.
type Options struct {
	// Symbolizer answers the frames; nil answers none. For files without a build ID its finders
	// must include [Files].
	Symbolizer *symbolize.Symbolizer

	// Elements is for the readers' NewMarkup: every frame in a file with a build ID becomes an
	// element, for another program to answer, and no other frame does.
	Elements bool

	// Sysroot is the folder that holds the files named by the report, if that is not the root.
	// PrefixMap replaces the first prefix that matches a file's name; the result is then the path,
	// without Sysroot. It applies to object files and to source files. Basenames shows source files
	// without their folders.
	Sysroot   string
	PrefixMap []buildid.PrefixMap
	Basenames bool

	// NoPaths opens no file because the report names it: what has no name in the report stays
	// without.
	NoPaths bool

	// Wait is how long the whole report may wait for debug files, however many are missing: see
	// [Patience]. Context ends all waiting; nil never does.
	Wait    time.Duration
	Context context.Context

	// Members are members of each object of JSON, with commas between them: such as "file":"name".
	Members []byte

	// Diagnose gets, in one line each, what is wrong with the report and why frames of an object
	// stay as they are. Unresolved gets, once at the end, the frames without a name by object.
	// Either may be nil.
	Diagnose   func(string)
	Unresolved func([]Unresolved)
}

// Place returns the path of the object file that a report calls name.
func (o *Options) Place(name string) string {
	return buildid.PrefixMaps(o.PrefixMap).Place(name, o.Sysroot)
}

// ShownFile returns the name of a source file as it is shown.
func (o *Options) ShownFile(name string) string {
	name, _ = buildid.PrefixMaps(o.PrefixMap).Replace(name)
	if o.Basenames {
		name = name[strings.LastIndexAny(name, `/\`)+1:]
	}
	return name
}

// Report passes a diagnostic on.
func (o *Options) Report(message string) {
	if o.Diagnose != nil {
		o.Diagnose(message)
	}
}
