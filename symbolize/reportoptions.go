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
	// Symbolizer resolves the frames; if it is nil, none is resolved.
	Symbolizer *Symbolizer

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
	// waits for answers that come one after the other add up. Context ends all waiting; nil never
	// does.
	Wait    time.Duration
	Context context.Context

	// Filter, if it is a *filter.Filter, is the one that takes the elements of NewMarkup. Its
	// Options.Patience takes the place of Wait and Context, so that the two do not wait one after
	// the other.
	Filter io.Writer

	// Memory grants the heap, in bytes, that grows with a profile or with the calls of a report:
	// Take reports whether n more bytes are granted, and Give returns n of them. What finds no room
	// is left out or summed up, with a diagnostic. Reports on different goroutines may share it. If
	// it is nil, each has [DefaultMaxMemory] for itself.
	Memory interface {
		Take(n int64) bool
		Give(n int64)
	}

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

// Unresolved counts the frames of a report, or the elements of a log, that have no name, for one
// object file.
type Unresolved struct {
	ID buildid.ID // of the object file; zero if the file is missing or has none
	// path of the file on this machine, or the name of a log's module as logged; empty if the
	// report names no object for the addresses
	Name   string
	Frames int64 // frames, functions of a profile, or elements of a log
	Err    error // why they have no name; nil if no symbol covers the addresses

	// Candidate is a file on this machine that may be the one of a log's module, which the log does
	// not prove. Base is the address at which it was loaded then, 0 if the log shows that.
	// Candidate is empty if no such file is known.
	Candidate string
	Base      uint64
}
