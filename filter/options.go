package filter

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Limits, one a line, with unit and reason.
const (
	maxLine       = 1 << 20  // bytes of a line that is parsed; longer lines pass through uninterpreted
	maxRepeat     = 4 << 10  // bytes of text around a backtrace element that are repeated on each inlined line
	maxModules    = 65536    // modules a process
	maxMaps       = 262144   // mapped intervals a process
	maxName       = 4 << 10  // bytes of a module's name; more is no path
	maxNames      = 8 << 20  // bytes of the names of a process's modules
	maxPieces     = 65536    // elements and texts between them that are looked at in a line; the rest of it is text
	maxUnresolved = 1024     // distinct modules remembered for Unresolved
	directWrite   = 32 << 10 // bytes; a longer span of plain text is written from the caller's block, not copied
	outputChunk   = 256 << 10
	noneFor       = 2 * time.Second // that no symbol covers an address is remembered; a file that comes late serves later lines
	readBlock     = 256 << 10       // bytes a read; with a 1 MiB pipe larger blocks only leave the L2 cache
)

// Color says what becomes of colour: of the log's own SGR sequences, and
// whether the elements are highlighted.
type Color uint8

const (
	ColorKeep   Color = iota // the log's bytes untouched, no highlighting
	ColorAlways              // the log's state tracked and restored after highlighted elements; a dangling state ends with its line
	ColorNever               // SGR sequences removed
)

// Output says in which form the log is printed.
type Output uint8

const (
	Text Output = iota // the log, with answers in the place of elements
	JSON               // an object for each line: log.schema.json
)

// ModuleLines says what becomes of lines that tell of modules and their maps.
type ModuleLines uint8

const (
	ModuleLinesFull  ModuleLines = iota // one line for a module and its maps
	ModuleLinesShort                    // one line for a module, with the last part of its path and without maps
	ModuleLinesNone                     // left out
	ModuleLinesRaw                      // as they came, so that a later filter may read them again
)

// Options configure a Filter. The zero value resolves nothing and keeps
// colours.
type Options struct {
	// Symbolizer answers the locations; nil leaves every frame at module and
	// offset.
	Symbolizer *symbolize.Symbolizer

	// Cache holds rendered frames; Filters with equal Paths options may share
	// one. Nil: the Filter makes its own.
	Cache *Cache

	Output Output

	// Printer prints the lines in another form; nil: as Output says. It belongs to this Filter alone.
	Printer Printer

	// Resolved is called with the answer for each address of the log, in its order, from the goroutine
	// that uses the Filter, before the line is printed: for each backtrace, code and data element, and
	// each value of a hexdict that is in a module. r and what it refers to must not be changed, and are
	// valid until Resolved returns. It must not call the Filter. Nil: none.
	Resolved func(r *Resolved)

	// Terminal says that a person's terminal shows the output: control
	// characters of the log's text, other than TAB and colour, are made
	// visible. Without it they pass as they are.
	Terminal bool

	// ProcessKey, if not nil, tells the processes of the stream apart by what
	// its first group that takes part matches in a line; see the function of
	// that name. Each has its own modules and maps.
	ProcessKey *regexp.Regexp

	// DumpFile is called for each dumpfile element with the context that the
	// dump needs to be read, until it says that it wants no more. Nil: none.
	DumpFile func(Dump) (more bool)

	// Context ends all waiting for debug files when it is done; nil never
	// does.
	Context context.Context

	Color Color

	// Patience is how long lines wait for debug files. The zero value waits for none, but opens and
	// reads those that are found.
	Patience Patience

	// ModuleLines says what becomes of lines that tell of modules and their maps.
	ModuleLines ModuleLines

	// Paths says how source files are shown.
	Paths Paths

	// Emit takes the output, and of which line of the log it was made: for a block of lines that
	// pass as they are, that of the first. The output of a line may come in several calls. out is
	// valid until Emit returns; an error ends the output, and Write returns it. Nil: the output is
	// written to the Filter's writer.
	Emit func(line int64, out []byte) error

	// Members appends members to the JSON object of a line of the log, each with a comma before it.
	// Nil: none.
	Members func(dst []byte, line int64) []byte

	// Diagnose is called for each malformed or contradictory element, from
	// the goroutine that uses the Filter. Nil: none. The Filter does not
	// limit their number.
	Diagnose func(Diagnostic)
}

// Patience is how long the lines of a stream may wait for debug files. The time for a file is counted
// from the first line that names its build ID: N missing modules cost one wait. After a wait in vain
// there is none for servers until one of the files is found, or known to exist nowhere.
type Patience struct {
	// Local is for files on this machine: looking for them, and inflating them. Servers is for all of
	// the search; if it is shorter than Local, a line waits that long for servers, and goes out when
	// this machine has been searched.
	Local, Servers time.Duration

	// PerMinute bounds the waiting of the stream in any minute, and lets the lines of one Write, which
	// came together, wait no longer than the longer of Local and Servers in all; 0 does neither.
	PerMinute time.Duration

	// Never has nothing opened, inflated or parsed in the goroutine that uses the Filter: an address
	// that would need it stays unresolved, is asked for in the background, and is known later. The
	// other fields do not count then. See [symbolize.Symbolizer.AtOnce].
	Never bool
}

// Diagnostic says what was wrong with one element.
type Diagnostic struct {
	Line    int64  // 1-based line of the stream
	Byte    int    // 1-based byte in the line
	Message string // what was expected and what stood there, one line
}

// Paths says how source files are shown.
type Paths struct {
	Basenames bool        // only the last element
	Map       []PrefixMap // the first prefix that matches is replaced
}

// PrefixMap replaces the prefix Old of a path by New.
type PrefixMap = buildid.PrefixMap

// shown returns path as Paths says.
func (p *Paths) shown(path string) string {
	path, _ = buildid.PrefixMaps(p.Map).Replace(path)
	if p.Basenames {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return path
}
