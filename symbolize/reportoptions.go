package symbolize

import (
	"context"
	"io"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// ReportOptions are the options that all readers of reports share: valgrind, callgrind and rtrace.
// The zero value leaves every frame as it is in the report, and waits for nothing.
type ReportOptions struct {
	// Symbolizer resolves the frames. If it is nil, they stay unresolved.
	Symbolizer *Symbolizer

	// Elements is for the readers' NewMarkup. Every frame in a file with a build ID becomes an
	// element, for another program to resolve. Frames in other files do not become elements.
	Elements bool

	// Sysroot is the folder of the files in the report, if not the root folder. PrefixMap replaces
	// the first prefix that matches the name of a file; the result is then the path, without
	// Sysroot. Both apply to object files and to source files. Basenames shows source files without
	// their folders.
	Sysroot   string
	PrefixMap []buildid.PrefixMap
	Basenames bool

	// NoPaths keeps files named in the report from being opened: their unnamed frames stay unnamed.
	NoPaths bool

	// Wait is how long frames may wait for one debug file, from the first lookup or Prefetch of its
	// object. Files that are searched for at the same time, or that hang on one server, share one
	// wait; waits for successive answers add up. Context, if not nil, ends all waiting.
	Wait    time.Duration
	Context context.Context

	// Filter, if it is a *filter.Filter, receives the elements of NewMarkup. Its Options.Patience
	// replaces Wait and Context: the report does not wait in addition to the filter.
	Filter io.Writer

	// Memory grants the heap that grows with a profile or with the calls of a report. Take reports
	// whether n more bytes are granted, and Give returns n bytes. Data without room is left out or
	// summed up, with a diagnostic. Reports on different goroutines may share it. If Memory is nil,
	// each report has [DefaultMaxMemory].
	Memory interface {
		Take(n int64) bool
		Give(n int64)
	}

	// Members are added to each JSON object: text such as "file":"name", with commas between
	// members.
	Members []byte

	// Diagnose receives one-line diagnostics: defects of the report, and the reasons why frames of
	// an object remain unresolved. Named receives, once at the end, the number of frames that
	// symbols named. After it, Unresolved receives the unresolved frames by object. Elements of
	// NewMarkup are counted by their filter. Each may be nil.
	Diagnose   func(string)
	Named      func(int64)
	Unresolved func([]Unresolved)
}

// Unresolved counts the frames of a report, or the elements of a log, without a name, for one
// object file.
type Unresolved struct {
	ID buildid.ID // build ID of the object file; zero if the file is missing or has none
	// path of the file on this machine, or name of the module in the log; empty if the report names
	// no object for the addresses
	Name   string
	Frames int64 // frames, functions of a profile, or elements of a log
	Err    error // why they have no name; nil if no symbol covers the addresses

	// Candidate is a file on this machine that may be the module's, without proof in the log; empty
	// if no such file is known. Base is the load address that Candidate implies, or 0 if the log
	// shows that address.
	Candidate string
	Base      uint64
}
