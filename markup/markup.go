// Package markup reads and writes the symbolizer markup format: it finds elements in log lines,
// parses them into values, and prints values as elements.
//
// A program that knows addresses but no symbols logs elements such as {{{bt:0:0x7f0012345678:ra}}},
// and the modules and maps that give them meaning. LLVM's document "Symbolizer Markup Format"
// defines the elements. Reading takes two steps, which allocate only names and errors. A [Scanner]
// splits a line into text, colour sequences and elements. Then [ParseAs] or [Parse] parses the
// fields of an element into a value. Every [Element] prints itself. A [Writer] prints a stream of
// text and elements so that any markup filter shows the original text.
//
// Logs are untrusted: text that cannot be parsed as an element stays text, no input takes more than
// linear time, and the package never panics.
package markup

import "github.com/symfilter/symfilter/buildid"

// Limits of this package.
const (
	// bytes from {{{ to }}}; the longest real elements are C++ symbols, and the demangler stops at
	// 4 KiB
	maxElement = 16 << 10
	maxSGR     = 64       // parameter bytes of a colour sequence; package sgr emits up to 51
	maxGot     = 64       // bytes of the log that a SyntaxError repeats
	maxBraces  = 1024     // braces that a Writer puts into one element
	writeSize  = 32 << 10 // bytes collected by a Writer before they are written
)

// An Element is a value of one of these types: [Reset], [Module], [MMap], [PC], [BT], [Data],
// [Symbol], [HexDict] or [DumpFile].
type Element interface {
	// AppendMarkup appends the element as one well-formed element of markup. A value that came from
	// parsing parses to an equal value again. Addresses have an even number of digits (0x00), sizes
	// are hexadecimal, other numbers decimal.
	//
	// A name that was not parsed may have bytes that the format cannot hold. They are replaced by
	// \x3a (':'), \x7b ('{', if it would begin an element), \x7d ('}') or \x0a (a line end).
	// Parsing does not reverse this. A name that would make the element longer than 16 KiB is cut.
	AppendMarkup(dst []byte) []byte
}

// Reset reports that a new process begins: all earlier modules and maps are invalid (section
// "Contextual elements" of the spec).
type Reset struct {
	Extra string // "begin" or "end", which Fuchsia's logs have, or ""
}

// Module names a loaded ELF file. Maps refer to it by its ID.
type Module struct {
	ID      uint64
	Name    string // a soname or a path, for people; may be empty; untrusted
	BuildID buildid.ID
}

// MMap reports that a part of a module is loaded at Addr.
type MMap struct {
	Addr   uint64
	Size   uint64 // bytes, possibly 0 or a part of a page; Addr+Size may exceed 2^64
	Module uint64 // ID of the Module
	Mode   Mode
	Rel    uint64 // the module-relative address (p_vaddr) of the byte at Addr
}

// PC is the address of an instruction, outside of a backtrace.
type PC struct {
	Addr uint64
	Kind PCKind
}

// BT is a frame of a backtrace.
type BT struct {
	Frame   uint64 // 0 for the innermost frame
	Addr    uint64
	Kind    PCKind
	Message string // the rest of the fields, such as "sp 0x3f54" of Fuchsia's logs
}

// Data is the address of a variable.
type Data struct {
	Addr uint64
}

// Symbol is the linkage name of a function, variable or type. A name for people, such as
// ns::f(int), should be printed as text: other filters read a name only up to its first colon.
// [Symbol.Literal] describes a second use.
type Symbol struct {
	Name string
}

// DumpFile reports that the program published a dump, such as coverage data, under this name.
type DumpFile struct {
	Type, Name string
}

// PCKind identifies the instruction that a code address points to (see bt in the spec).
type PCKind uint8

const (
	Ambiguous     PCKind = iota // not specified: usually a return address
	ReturnAddress               // :ra, the instruction after a call
	Precise                     // :pc, the instruction itself
)

// Mode is the set of permissions of a map.
type Mode uint8

const (
	Exec Mode = 1 << iota
	Write
	Read
)

// String returns the letters for m, in the order rwx.
func (m Mode) String() string {
	return [...]string{"", "x", "w", "wx", "r", "rx", "rw", "rwx"}[m&(Read|Write|Exec)]
}

// Tag is the kind of an element.
type Tag uint8

const (
	NoTag Tag = iota // text, or a colour sequence
	TagReset
	TagModule
	TagMMap
	TagPC
	TagBT
	TagData
	TagSymbol
	TagHexDict
	TagDumpFile
	TagUnknown // lower-case letters that are not a known tag
)

// String returns the tag as text, and "" for NoTag and TagUnknown.
func (t Tag) String() string {
	switch t {
	case TagReset:
		return "reset"
	case TagModule:
		return "module"
	case TagMMap:
		return "mmap"
	case TagPC:
		return "pc"
	case TagBT:
		return "bt"
	case TagData:
		return "data"
	case TagSymbol:
		return "symbol"
	case TagHexDict:
		return "hexdict"
	case TagDumpFile:
		return "dumpfile"
	}
	return ""
}

// tagOf returns the tag with this name, or TagUnknown.
func tagOf(name []byte) Tag {
	switch string(name) {
	case "bt":
		return TagBT
	case "pc":
		return TagPC
	case "data":
		return TagData
	case "mmap":
		return TagMMap
	case "reset":
		return TagReset
	case "module":
		return TagModule
	case "symbol":
		return TagSymbol
	case "hexdict":
		return TagHexDict
	case "dumpfile":
		return TagDumpFile
	}
	return TagUnknown
}
