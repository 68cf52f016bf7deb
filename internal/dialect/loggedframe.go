package dialect

import (
	"bytes"
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
)

// A Number is what the number of a frame counts.
type Number uint8

const (
	Vaddr      Number = iota // address in the ELF file, as its symbols and DWARF have it
	BaseOffset               // bytes from the address at which the first page of the file is loaded
	FileOffset               // bytes from the beginning of the file
	CodeOffset               // bytes from the beginning of the mapping of the file's code; see Frame.Crash
	Runtime                  // address in the process; Frame.Addr is the same
	InSymbol                 // bytes from the beginning of Frame.Symbol
	InKernel                 // address in a running kernel, which may have been moved from the addresses of its file

	// Offsetted is a Vaddr of Android 11 and newer. Older versions print a FileOffset, or the bytes
	// from the beginning of the executable mapping. All frames of a module have the same kind. It
	// is Vaddr unless the code of the file refutes that, and agrees with one of the others.
	Offsetted
	// FileOrRuntime is FileOffset, or Runtime in a program that is loaded at its link address: the
	// file decides.
	FileOrRuntime
)

// A Call is the relation between the number of a frame and the call instruction that the frame is
// in.
type Call uint8

const (
	Return   Call = iota // a return address: the byte before it belongs to the call
	Adjusted             // an address within the call: the producer has subtracted from a return address
	Exact                // the address of the frame itself: of a fault, or after a signal
	Either               // Return or Exact: a call before the address decides
	System               // Exact, or after the instruction of a system call, if one is before the address
)

// A Frame is one frame of a backtrace: its place as logged, what proves the place or refutes it,
// and how its line changes for the answer. The byte slices refer to its line.
type Frame struct {
	Dialect *Dialect
	Number  int // of the frame in its stack, as logged; -1 if it has none
	LoggedPlace
	Proof
	Rewrite
}

// A LoggedPlace is the address of a frame as its line has it, and the module that the address is
// in.
type LoggedPlace struct {
	// Module is the module as the line names it: a path, a name, or what a program was called as.
	// It is empty if the line has none. ID is its build ID, zero if neither the line nor the lines
	// before have one.
	Module string
	ID     buildid.ID
	Prefix buildid.ID // the first bytes of the build ID of the module, if ID is not known

	// Program is set if the line has no module because the frame is in the program itself, or its
	// address is not in code. Deleted is set if the file at the path was deleted.
	Program, Deleted bool

	Kind       Number
	Value      uint64 // the number, of the kind Kind
	Addr       uint64 // address in the process; 0 if not in the line
	KernelAddr uint64 // address of the frame in a running kernel, beside Symbol; 0 if the line does not have it
	Call       Call
	Symbol     Symbol
	Less       uint64 // what the producer has subtracted in each frame but the first, exact ones included; it is added in Addr
	Usual      uint64 // a load bias that the module is likely to have; 0 if unknown

	// Machine, if not 0, is the only machine on which the number is an address of code.
	Machine elf.Machine

	// Data is set for the address of a variable. Its Addr is in the process.
	Data bool
}

// A Proof is what a log has beside a place to judge by whether a file is the one that ran, and why
// no file may be asked.
type Proof struct {
	Process uint64 // number of the process in a log of several; 0 if not in the line
	PID     uint64 // the process that has logged the line, if its maps have theirs; otherwise it may be 0

	// Key is the same in all frames of a Reader that have the same module, build ID, Kind, Value
	// and Call, and in a Kernel the same Symbol; 0 if these were not compared.
	Key uint64

	Crash  *Crash      // set for a process that the kernel has killed
	Kernel *Kernel     // set for a function of a kernel
	Load   *KernelLoad // of the kernel of a frame with an address
	Code   []byte      // the code at the address, if the line lists it; otherwise nil
	Listed *Code       // listing around the instruction of a function of a kernel, which a later line fills in; nil if none is awaited

	// Optional is set if the number may be anything: it is a frame only if the file has code there.
	Optional bool
	Unsure   bool // an address on the stack of a kernel, which may be left of an earlier call

	// Apart is set if lines without frames are before the frame's line, or if lines of its dialect
	// are no callers of the lines before. A frame without a number then begins a stack.
	Apart bool

	// Awaits is set if a later line of the report may have the build ID of the module.
	Awaits bool

	// NoModule is the reason if no module is known for the address; nil: ErrNoModule.
	NoModule error
	Unread   error // why frames of this kind are never located; nil if they can be
}

// A Rewrite is how the line of a frame changes for an answer.
type Rewrite struct {
	// Start is the offset in the line at which the frame begins. The text before it is repeated
	// on lines that are added for inlined calls.
	Start int

	// Digits is the place of the frame's number in the line, if inlined calls change the numbers of
	// the frames after them, as the producer itself would; otherwise it is empty.
	Digits Span

	// First is the place of a word that is Later on the lines that InlineFrames adds.
	First Span
	Later string

	// Depth is the place of the depth of an inlined call, for InlineDotted.
	Depth Span

	// Edits are the changes of the line for an answer, in the order of their places.
	Edits  []Edit
	Inline Inline

	// Below is the text before the answer if the line has several frames: each then has a line of
	// its own after the line.
	Below string

	// Named is set if the line has its answer already, or can have none: only its number changes.
	Named bool

	// PlaceBelow is set if the producer prints the place of a frame that it has found on the next
	// line: then there is nothing to add. Placed reports whether a line is one.
	PlaceBelow bool

	// Wraps is set if the module may be in the next line. Continue reads it.
	Wraps bool

	// Unframed is set for an address of code or data that is no frame: its answer replaces the only
	// Edit.
	Unframed bool

	// Footnote is set if the line must not change: the answer follows the maps of the process.
	Footnote bool
}

// A Symbol is the symbol that the producer of a frame has found near its address.
type Symbol struct {
	Name   string // mangled or demangled; empty if the line has none
	Offset int64  // of the frame's address from the symbol
	Size   uint64 // of the symbol, at least; 0 if the line has none
	Inside bool   // Offset is not known: the address is somewhere in the symbol
}

// A Span is a part of a line.
type Span struct{ From, To int }

// A Part is what an Edit puts into a line.
type Part uint8

const (
	Name           Part = iota // the function; with +0xOFFSET if the answer has no line
	Func                       // the function alone
	Rename                     // Name, if the line has no name there, or that of another function
	BareFunc                   // Func without the prefix of a sanitizer's interceptor
	Callers                    // " inlined into f file:line:column" for each call around the innermost
	Nothing                    // no part: the Edit removes text
	NothingInCalls             // Nothing, but only around an inlined call: in all frames but the innermost
	Decimal                    // as Name, with a decimal offset
	Spaced                     // as Name, with blanks: f + 0x12
	JSONFunc                   // the function, as a string of JSON
	Inlined                    // the function if it is inlined there; otherwise the Edit has no effect
	AtLine                     // file:line
	AtSpaced                   // file : line
	AtColumn                   // file:line:column, or file:line if the column is not known
	AtBase                     // file:line, without the file's directories
	Other                      // the function, if the answer has a line and Frame.Symbol is another function
	AtSource                   // AtColumn without "./" at the beginning, and without a line that is 0
	FuncAt                     // the function alone, if the answer has a line
	Strings                    // "f at file:line" for each call, innermost first, as strings in JSON with commas between them
	JSONSource                 // members of an object of JSON, about Frame.Symbol if that has a name: "source_file": "file", "source_line": line, "inlined_by": ["f at file:line"], "inlined": ["g at file:line"]
)

// An Edit replaces a part of the line by Before, the Part of the answer, and After. An Edit with a
// place has no effect if the answer has no line, and one with BareFunc if it has no function.
type Edit struct {
	Span
	Before string
	Part   Part
	After  string
}

// An Inline is the form in which the inlined calls at an address are printed. The zero value is
// that of addr2line.
type Inline uint8

const (
	// InlinedBy gives the line to the innermost call. For each call around it follows a line
	// "  (inlined by) f at file:line", with the text before the frame.
	InlinedBy Inline = iota
	// InlinedByBefore is InlinedBy for traces with the newest call last: the lines come before.
	InlinedByBefore
	// InlineFrames repeats the line for each call, innermost first, as frames of their own.
	InlineFrames
	// InlineMarked gives the line to the function that was called. Each inlined call has a line
	// "f file:line [inline]" before it, innermost first, as for the frames of a kernel.
	InlineMarked
	// InlineBelow is InlinedBy in the form of Rust: each call has its place on the line after it,
	// and the calls around the innermost one have no number and no address.
	InlineBelow
	// Innermost prints the innermost call alone.
	Innermost
	// InlineDotted is InlineFrames with the number of the frame on all lines: an inlined call has
	// its depth after it, as in "#3.1".
	InlineDotted
	// InlineNumbered gives the line to the function that was called. Each inlined call has a line
	// "N.K. inlined from file:line: f" before it, innermost first, as ClickHouse prints it.
	InlineNumbered
)

// A Dialect is a way in which programs print backtraces.
type Dialect struct {
	Name   string // for --dialects
	Who    string // the programs, in a few words
	Needs  string // what must be known to resolve a frame
	Sample string // a frame, as it is in a log

	OnDemand bool // --dialects=auto leaves it out

	// FramePointers is set if the program unwinds its own stack at a fault, by frame pointers if
	// there is nothing else. The last frame of a stack may then be outside all code; the first is
	// at an instruction.
	FramePointers bool

	Subtracts Subtraction // from return addresses, if that depends on the machine
}

// A Subtraction is what a producer subtracts from the return addresses of a device.
type Subtraction uint8

const (
	AsCalled    Subtraction = iota // nothing beyond what Frame.Call tells
	LessESPIDF                     // ESPLess on Xtensa; on RISC-V nothing, but for the address of abort
	LessESPRust                    // ESPLess on Xtensa, 4 on RISC-V; nothing in old versions
)

// Placed reports whether next, the line after f's, has the place of f: "at file:line" as Rust
// prints it, "file:line" or "-> file" as folly does, a build ID as eu-stack -b does.
func (f *Frame) Placed(next []byte) bool {
	if !f.PlaceBelow || len(next) < f.Start {
		return false
	}
	next = bytes.TrimRight(WithoutColors(next[f.Start:]), " \t\r\n")
	from := blanksAfter(next, 0)
	if from == 0 || from == len(next) {
		return false
	}
	_, digits, ok := decimalBefore(next, len(next))
	return ok && digits > from && next[digits-1] == ':' || hasAt(next, from, "-> ") || hasAt(next, from, "[") && f.Dialect == &euStack
}
