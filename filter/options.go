package filter

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxLine    = 1 << 20 // bytes of an interpreted line; longer lines are printed unchanged
	maxRepeat  = layout.MaxRepeat
	maxModules = 65536   // modules of a process
	maxMaps    = 262144  // mapped intervals of a process
	maxName    = 4 << 10 // bytes of a module's name; paths are not longer
	maxNames   = 8 << 20 // total bytes of the module names of a process
	// pieces of an interpreted line; the rest of the line is plain text
	maxPieces      = 65536
	maxUnresolved  = 1024            // distinct modules kept for Unresolved
	directWrite    = 32 << 10        // plain text of more bytes is written without a copy
	outputChunk    = 256 << 10       // bytes of output collected for one write
	noneFor        = 2 * time.Second // a miss is kept for this time, since a better file may appear
	longestElement = 16 << 10        // bytes; see markup.Scanner
	maxLongCut     = 1 << 10         // bytes kept of unfinished colour sequences in a longer line
	readBlock      = 256 << 10       // bytes of a read; larger blocks do not fit into the L2 cache
)

// Color selects how the log's SGR sequences are treated, and whether answers have colours.
type Color uint8

const (
	ColorKeep Color = iota // the log's sequences are printed unchanged; answers have no colours
	// the log's sequences are followed, restored after coloured answers, and ended with each line
	ColorAlways
	ColorNever // the log's sequences are removed; answers have no colours

	// ColorForPrinter is like ColorNever, but keeps the log's sequences in the text, for a Printer
	// that interprets them. Text that only looks like a sequence is escaped.
	ColorForPrinter
)

// Output selects the form of the output.
type Output uint8

const (
	Text Output = iota // the log, with answers in place of elements
	JSON               // an object for each line; its schema is log.schema.json
)

// ModuleLines selects how lines with modules and their maps are printed.
type ModuleLines uint8

const (
	ModuleLinesFull  ModuleLines = iota // one line for a module and its maps
	ModuleLinesShort                    // like ModuleLinesFull, without maps and folders
	ModuleLinesNone                     // not printed
	ModuleLinesRaw                      // printed unchanged, so that another filter can read them
)

// Options configure a Filter. The zero value resolves nothing and keeps colours.
type Options struct {
	// Symbolizer finds the answers. If it is nil, frames show only module and offset.
	Symbolizer *symbolize.Symbolizer

	// Cache holds rendered answers. Filters with equal Paths, and equal Own and ShortNames in
	// Display, may share a Cache. If Cache is nil, the Filter makes one.
	Cache *Cache

	// Output is the form of the output, unless Printer is set.
	Output Output

	// Printer, if not nil, prints the lines in a form of its own.
	Printer Printer

	// Resolved is called with the answer for each address in a bt, pc or data element or in a raw
	// frame. In a hexdict, it is called for each value that a module covers. The calls are in the
	// order of the log, before the line is printed, from the goroutine that uses the Filter.
	// Resolved must not call the Filter. r and its memory are valid until Resolved returns, and
	// must not be modified. Nil: not called.
	Resolved func(r *Resolved)

	// Terminal escapes control characters in the log's text, except TAB and colours: a terminal
	// would obey them. Without Terminal they are printed unchanged.
	Terminal bool

	// ProcessKey extracts the key of a line's process: the text of the first group that matches.
	// Each process has its own modules and maps. Nil: the stream has one process. See the function
	// ProcessKey.
	ProcessKey *regexp.Regexp

	// Limits bound the processes of the stream. Evicted is called with the key of each process that
	// a limit drops; reason is "processes" for their number, or "bytes". It is called from the
	// goroutine that uses the Filter, and must not call the Filter. Nil: not called.
	Limits  Limits
	Evicted func(key, reason string)

	// DumpFile is called for each dumpfile element, with the context for reading the dump, until it
	// returns false. Nil: not called.
	DumpFile func(Dump) (more bool)

	// Context, if not nil, ends all waits for debug files when it is done.
	Context context.Context

	// Color selects how colours are treated.
	Color Color

	// Patience bounds how long lines wait for debug files. With the zero value they do not wait,
	// but the Filter opens and reads files that have been found.
	Patience Patience

	// ModuleLines selects how lines with modules and their maps are printed.
	ModuleLines ModuleLines

	// Paths selects how source files are shown.
	Paths Paths

	// Display selects how frames are shown to people.
	Display Display

	// Dialects select the raw backtraces that are resolved.
	Dialects Dialects

	// Emit receives the output with its line number, or with the first line number of a block of
	// unchanged lines. A line's output may come in several calls. out is valid until Emit returns.
	// An error ends the output, and Write returns it. Nil: the Filter's writer receives the output.
	Emit func(line int64, out []byte) error

	// Members appends members, each after a comma, to the JSON object of a line. Nil: none.
	Members func(dst []byte, line int64) []byte

	// Diagnose is called for each malformed or contradictory element, without a limit, from the
	// goroutine that uses the Filter. Nil: not called.
	Diagnose func(Diagnostic)
}

// Patience is how long the lines of a stream may wait for debug files. The time for a file starts
// at the first line that names its build ID, so N missing modules cost one wait. After a wait
// without success, lines do not wait for servers until the search for one of the files has ended.
type Patience struct {
	// Local is the time for finding and inflating files on this machine. Servers is the time for
	// the whole search. If Servers is shorter than Local, a line stops waiting for servers after
	// Servers, but waits for this machine until Local.
	Local, Servers time.Duration

	// PerMinute bounds the total wait of the stream in any minute; 0: no bound. If it is set, all
	// lines of one Write share one wait, the longer of Local and Servers. Once this wait is used
	// up, further lines of the Write wait only for files on this machine, at most 0.1 s each time.
	PerMinute time.Duration

	// Never prevents the goroutine that uses the Filter from opening, inflating and parsing files.
	// An address that needs this stays unresolved; a background search finds its answer for later
	// lines. Local, Servers and PerMinute are ignored. See [symbolize.Now].
	Never bool

	// Asked is called with the duration of each question to the Symbolizer, including waits for
	// debug files. An answer in the Cache needs no question. It is called from the goroutine that
	// uses the Filter, and must not call the Filter. Nil: not called.
	Asked func(took time.Duration)
}

// A Diagnostic describes a fault in one element.
type Diagnostic struct {
	Line    int64  // 1-based line of the stream
	Byte    int    // 1-based byte in the line
	Message string // the fault on one line, for example with the expected and the found text
}

// Paths selects how source files are shown: the form of their paths, source lines, and links.
type Paths struct {
	Basenames bool                // only the last element of a path
	Map       []buildid.PrefixMap // the first prefix that matches is replaced
	// removes the elements . and .. and the folders of build systems
	Clean bool

	// Source returns the lines of the source file around the line of a frame at l. frame.File is
	// the path in debug information. The lines are printed below each own frame of a backtrace,
	// unless Options.Printer is set: see [Resolved.Snippet]. Source is called from the goroutine
	// that uses the Filter. Nil: no source lines.
	Source func(l symbolize.Location, frame *symbolize.Frame) symbolize.Snippet

	// Link appends the URL of a frame's line, in bytes from 0x21 to 0x7e. ok is false, and dst
	// unchanged, if the line has no URL. l and frame are as for Source. Many goroutines may call
	// Link at once. With Hyperlinks, files and lines of frames in texts are links to the URL (OSC
	// 8); see also [Resolved.Link]. Nil: no links.
	Link       func(dst []byte, l symbolize.Location, frame *symbolize.Frame) (_ []byte, ok bool)
	Hyperlinks bool
}

// Shown returns path in the form selected by p. It removes .. elements from absolute paths.
func (p *Paths) Shown(path string) string {
	path = p.mapped(path)
	if p.Basenames {
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	switch {
	case p.Clean:
		path = layout.CleanPath(path)
	// compilers record such a path if they were called with a relative path
	case strings.HasPrefix(path, "/") && strings.Contains(path, "/../"):
		path = layout.WithoutDots(path)
	}
	return path
}

func (p *Paths) mapped(path string) string {
	path, _ = prefixmap.Maps(p.Map).Replace(path)
	return path
}
