package filter

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/symbolize"
)

// Limits, with their units and reasons.
const (
	maxLine        = 1 << 20 // bytes of a line that is interpreted; longer: printed as it is
	maxRepeat      = layout.MaxRepeat
	maxModules     = 65536           // modules of a process
	maxMaps        = 262144          // mapped intervals of a process
	maxName        = 4 << 10         // bytes of a module's name; a path is not longer
	maxNames       = 8 << 20         // bytes of the names of a process's modules
	maxPieces      = 65536           // pieces of a line that are interpreted; the rest of it is text
	maxUnresolved  = 1024            // distinct modules kept for Unresolved
	directWrite    = 32 << 10        // bytes; longer plain text is written without a copy
	outputChunk    = 256 << 10       // bytes of output that are collected for one write
	noneFor        = 2 * time.Second // a miss is kept for this time: a better file may come
	longestElement = 16 << 10        // bytes; see markup.Scanner
	maxLongCut     = 1 << 10         // bytes of unfinished colour sequences of a longer line that are kept
	readBlock      = 256 << 10       // bytes of a read; larger ones only leave the L2 cache
)

// Color sets what becomes of the SGR sequences of the log, and whether answers have colours.
type Color uint8

const (
	ColorKeep   Color = iota // the log's sequences are printed as they are; answers have no colours
	ColorAlways              // followed, restored after coloured answers, ended with each line
	ColorNever               // the log's sequences are removed; answers have no colours

	// ColorForPrinter is as ColorNever, but the log's sequences stay in the text, for a Printer
	// that follows them. Text that only looks like a sequence is escaped.
	ColorForPrinter
)

// Output is a form of the output.
type Output uint8

const (
	Text Output = iota // the log, with answers in place of elements
	JSON               // an object for each line; its schema is log.schema.json
)

// ModuleLines sets what becomes of lines with modules and their maps.
type ModuleLines uint8

const (
	ModuleLinesFull  ModuleLines = iota // one line for a module and its maps
	ModuleLinesShort                    // the same, with the last part of the path and without maps
	ModuleLinesNone                     // not printed
	ModuleLinesRaw                      // printed as they are, so that another filter can read them
)

// Options configure a Filter. The zero value resolves nothing and keeps colours.
type Options struct {
	// Symbolizer finds the answers. If it is nil, frames show only module and offset.
	Symbolizer *symbolize.Symbolizer

	// Cache holds rendered answers. Filters with equal Paths and equal Own and ShortNames
	// of their Display may share one. If it is nil, the Filter makes one.
	Cache *Cache

	// Output is the form of the output, unless Printer is set.
	Output Output

	// Printer prints the lines in another form.
	Printer Printer

	// Resolved is called with the answer for each address of the log, in the order of the log,
	// before its line is printed: for each backtrace, code and data element, and for each value of
	// a hexdict that a module covers. It is called from the goroutine that uses the Filter, and
	// must not call the Filter. r and the memory that it refers to are valid until Resolved
	// returns, and must not be modified. Nil: not called.
	Resolved func(r *Resolved)

	// Terminal escapes control characters of the log's text, other than TAB and colours, for a
	// terminal that would obey them. Without it they are printed as they are.
	Terminal bool

	// ProcessKey finds the key of a line's process: the text of the first group that matches. Each
	// process has its own modules and maps. If it is nil, the stream is of one process. See the
	// function ProcessKey.
	ProcessKey *regexp.Regexp

	// Limits bound the processes of the stream. Evicted is called with the key of each process that
	// is dropped because of a limit; reason is EvictedForNumber or EvictedForSize. It is called
	// from the goroutine that uses the Filter, and must not call the Filter. Nil: not called.
	Limits  Limits
	Evicted func(key, reason string)

	// DumpFile is called for each dumpfile element, with the context that is needed to read the
	// dump, until it returns false. Nil: not called.
	DumpFile func(Dump) (more bool)

	// Context ends all waiting for debug files when it is done. If it is nil, nothing does.
	Context context.Context

	// Color sets what becomes of colours.
	Color Color

	// Patience is how long lines wait for debug files. The zero value waits for none, but opens and
	// reads those that are found.
	Patience Patience

	// ModuleLines sets what becomes of lines with modules and their maps.
	ModuleLines ModuleLines

	// Paths sets how source files are shown.
	Paths Paths

	// Display sets how frames are shown to people.
	Display Display

	// Dialects set which raw backtraces are resolved.
	Dialects Dialects

	// Emit receives the output with the number of its line; for a block of lines that are printed
	// as they are, the number of the first. The output of a line may come in several calls. out is
	// valid until Emit returns. An error ends the output, and Write returns it. If Emit is nil, the
	// output is written to the Filter's writer.
	Emit func(line int64, out []byte) error

	// Members appends members to the JSON object of a line, each with a comma before it. Nil: none.
	Members func(dst []byte, line int64) []byte

	// Diagnose is called for each malformed or contradictory element, from the goroutine that uses
	// the Filter. The Filter does not limit the number of calls. Nil: not called.
	Diagnose func(Diagnostic)
}

// Patience is how long the lines of a stream may wait for debug files. The time for a file counts
// from the first line that names its build ID, so that N missing modules cost one wait. After a
// wait without success, lines do not wait for servers until one of the files is found, or known not
// to exist.
type Patience struct {
	// Local is the time for files on this machine: for searching and inflating them. Servers is the
	// time for the whole search. If Servers is shorter than Local, a line waits that long for
	// servers, and is printed when this machine has been searched.
	Local, Servers time.Duration

	// PerMinute bounds the waiting of the stream in any minute. If it is set, the lines of one
	// Write, which came together, wait at most for the longer of Local and Servers together. 0
	// means no bound.
	PerMinute time.Duration

	// Never lets the goroutine that uses the Filter open, inflate and parse nothing. An address
	// that needs it stays unresolved; the answer is searched in the background, for later lines.
	// Local, Servers and PerMinute are ignored. See [symbolize.Now].
	Never bool

	// Asked is called after each question to the Symbolizer, which is one that the Cache could not
	// answer, with the time that it took, waiting for debug files included. It is called from the
	// goroutine that uses the Filter, and must not call the Filter. Nil: not called.
	Asked func(took time.Duration)
}

// A Diagnostic describes what is wrong with one element.
type Diagnostic struct {
	Line    int64  // 1-based line of the stream
	Byte    int    // 1-based byte in the line
	Message string // what was expected and what was found, on one line
}

// Paths sets how source files are shown: the form of their paths, source lines, and links.
type Paths struct {
	Basenames bool        // only the last element of a path
	Map       []PrefixMap // the first prefix that matches is replaced
	Clean     bool        // without the elements . and .., and without the folders of build systems

	// Source returns the lines of the source file around the line of a frame, which is one at l.
	// frame.File is the path as debug information has it. The lines are printed below each own frame
	// of a backtrace, unless Options.Printer is set: see [Resolved.Snippet]. Source is called from
	// the goroutine that uses the Filter. Nil: none are printed.
	Source func(l symbolize.Location, frame *symbolize.Frame) symbolize.Snippet

	// Link appends the URL of the line of a frame, with bytes from 0x21 to 0x7e only. ok is false,
	// and dst unchanged, if the line has no URL. The arguments are those of Source. Link may be
	// called by many goroutines at once. With Hyperlinks, files and lines of frames in texts are
	// links to the URL (OSC 8); see also [Resolved.Link]. Nil: there are no links.
	Link       func(dst []byte, l symbolize.Location, frame *symbolize.Frame) (_ []byte, ok bool)
	Hyperlinks bool
}

// PrefixMap replaces the prefix Old of a path by New.
type PrefixMap = buildid.PrefixMap

// Shown returns path in the form that p sets. An absolute path has no elements .. in any form.
func (p *Paths) Shown(path string) string {
	path = p.mapped(path)
	if p.Basenames {
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	switch {
	case p.Clean:
		path = layout.CleanPath(path)
	// the compiler was called by a relative path
	case strings.HasPrefix(path, "/") && strings.Contains(path, "/../"):
		path = layout.WithoutDots(path)
	}
	return path
}

// mapped returns path with its prefix replaced.
func (p *Paths) mapped(path string) string {
	path, _ = buildid.PrefixMaps(p.Map).Replace(path)
	return path
}
