// Package markup is the symbolizer markup format: it finds elements in log lines, parses them into values, and prints them.
//
// A program that knows addresses but no symbols logs them as elements such as {{{bt:0:0x7f0012345678:ra}}}, next to the modules
// and maps that give them meaning; LLVM's document "Symbolizer Markup Format" defines them. Reading is in two steps that
// allocate nothing but names and errors: a [Scanner] splits a line into text, colour sequences and elements, and a function such as [ParseBT] turns an
// element's fields into its value. The other way, every [Element] prints itself, and a [Writer] prints a stream of text and
// elements so that any markup filter shows the text as it was.
//
// Logs are hostile: what cannot be parsed is text, no input takes more than linear time, and the package never panics.
package markup

import "github.com/symfilter/symfilter/buildid"

// Limits of this package.
const (
	maxElement = 16 << 10 // bytes from {{{ to }}}; the longest real ones are C++ symbols, and the demangler stops at 4 KiB
	maxSGR     = 64       // parameter bytes of a colour sequence; package sgr emits up to 51
	maxGot     = 64       // bytes of the log repeated in a SyntaxError
	maxBraces  = 1024     // braces in one element that stands for them, see Writer
	writeSize  = 32 << 10 // bytes collected by a Writer before they are written
)

// An Element is one of the values of this package: [Reset], [Module], [MMap], [PC], [BT], [Data], [Symbol], [HexDict] or
// [DumpFile].
type Element interface {
	// AppendMarkup appends the element as markup: always one well-formed element, which parses to an equal value if it was
	// parsed itself. Addresses have an even number of digits (0x00), sizes are hexadecimal, other numbers decimal.
	//
	// In a name that was not parsed, bytes that the format cannot hold are replaced by \x3a (':'), \x7b ('{', where it would
	// begin an element), \x7d ('}') or \x0a (a line end); they are not read back. A name that would make the element
	// longer than 16 KiB is cut.
	AppendMarkup(dst []byte) []byte
}

// Reset forgets all modules and maps: a new process begins (the spec's section "Contextual elements").
type Reset struct {
	Extra string // "begin" or "end", as Fuchsia's logs have it, or ""
}

// Module names a loaded ELF file; maps refer to it by its ID.
type Module struct {
	ID      uint64
	Name    string // a soname or a path, for people; may be empty, and may be hostile
	BuildID buildid.ID
}

// MMap says that a part of a module is loaded at Addr.
type MMap struct {
	Addr   uint64
	Size   uint64 // bytes; may be 0, may not be a multiple of a page, and may reach beyond 2^64
	Module uint64 // the Module's ID
	Mode   Mode
	Rel    uint64 // the module-relative address (p_vaddr) that Addr has
}

// PC is a code location.
type PC struct {
	Addr uint64
	Kind PCKind
}

// BT is a frame of a backtrace.
type BT struct {
	Frame uint64 // 0 is the innermost
	Addr  uint64
	Kind  PCKind
}

// Data is the location of a variable.
type Data struct {
	Addr uint64
}

// Symbol is the linkage name of a function, variable or type. Names for people, such as ns::f(int), are better printed as text:
// other filters read a name up to its first colon. See [Symbol.Literal] for its second use.
type Symbol struct {
	Name string
}

// DumpFile says that a file of this type has been published under this name.
type DumpFile struct {
	Type, Name string
}

// PCKind says where a code address points to (the spec's description of bt).
type PCKind uint8

const (
	Ambiguous     PCKind = iota // not said: usually a return address
	ReturnAddress               // :ra, behind the call
	Precise                     // :pc, the instruction itself
)

// Mode is the set of permissions of a map.
type Mode uint8

const (
	Exec Mode = 1 << iota
	Write
	Read
)

// String returns those of the letters rwx that are in m, in this order.
func (m Mode) String() string {
	return [...]string{"", "x", "w", "wx", "r", "rx", "rw", "rwx"}[m&(Read|Write|Exec)]
}

// Tag says which element a token is.
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
	TagUnknown // lower-case letters that are none of these
)

// String returns the tag as it is written, and "" for NoTag and TagUnknown.
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

// tagOf is the inverse of Tag.String; name is not empty.
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
