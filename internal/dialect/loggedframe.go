package dialect

import (
	"bytes"
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
)

// A Number is the meaning of the number in a frame, Frame.Value.
type Number uint8

const (
	Vaddr      Number = iota // address in the ELF file, as in its symbols and DWARF
	BaseOffset               // bytes from the address of the file's first loaded page
	FileOffset               // bytes from the beginning of the file
	// bytes from the start of the mapping of the file's code; see Frame.Crash
	CodeOffset
	Runtime  // address in the process, equal to Frame.Addr
	InSymbol // bytes from the beginning of Frame.Symbol
	InKernel // address in a running kernel, which may have been relocated

	// Offsetted is a Vaddr on Android 11 and newer, and a FileOffset, or bytes from the start of
	// the executable mapping, on older versions. The numbers of all frames in a module have the
	// same meaning: Vaddr, unless the file's code refutes Vaddr. Then the only other meaning that
	// agrees with the code applies. If no meaning agrees, or two meanings lead to different
	// addresses, the frames are not located.
	Offsetted
	// FileOrRuntime is FileOffset, or Runtime in a program loaded at its link address. The file
	// decides between the two.
	FileOrRuntime
)

// A Call is the relation between a frame's Value and the frame's call instruction.
type Call uint8

const (
	Return   Call = iota // a return address: the byte before it is in the call
	Adjusted             // an address within the call: a return address minus some bytes
	Exact                // the exact address of the frame: at a fault, or after a signal
	Either               // Return or Exact, depending on whether the address follows a call
	System               // Exact, or after a system call instruction, if the address follows one
)

// A Frame is one frame of a backtrace: its logged location, the evidence about that location, and
// the edits that print the answer in its line. The byte slices refer to the line.
type Frame struct {
	Dialect *Dialect
	Number  int // logged number of the frame in its stack; -1 if it has none
	LoggedPlace
	Proof
	Rewrite
}

// A LoggedPlace is the location of a frame as logged: its address or offset, and the module that
// contains it.
type LoggedPlace struct {
	// Module is the module's name in the line: a path, a name, or the name by which a program was
	// called. It is empty if the line names no module. ID is the module's build ID, from this line
	// or an earlier one, or zero.
	Module string
	ID     buildid.ID
	Prefix buildid.ID // first bytes of the module's build ID, if ID is unknown

	// Program is set if the line names no module for one of two reasons: the frame is in the
	// program itself, or the address is not in code. Deleted is set if the file at the module's
	// path was deleted.
	Program, Deleted bool

	Kind       Number
	Value      uint64 // the number in the line, with the meaning Kind
	Addr       uint64 // address in the process; 0 if not in the line
	KernelAddr uint64 // with Symbol: address of the frame in a running kernel; 0 if not in the line
	Call       Call
	Symbol     Symbol
	// number that the producer subtracts from the address in each frame except the first, even from
	// an exact address; Addr is the original address
	Less  uint64
	Usual uint64 // a likely load bias of the module; 0 if unknown

	// Machine, if not 0, is the only machine on which the number is a code address.
	Machine elf.Machine

	// Data is set for a variable's address. Then Addr is an address in the process.
	Data bool
}

// A Proof holds further facts in a log that show whether a file ran, and reasons why no file can be
// used.
type Proof struct {
	Process uint64 // number of the process in a log of several processes; 0 if not in the line
	// ID of the process that has logged the line, which is compared with the process of the maps; 0
	// if the line does not have it, or if no maps are known or expected
	PID uint64

	// Key is equal in all frames of a Reader with the same module, build ID, Kind, Value and Call.
	// Kernel functions must also have the same Symbol. It is 0 if these fields were not compared.
	Key uint64

	Crash  *Crash      // set for a process killed by the kernel
	Kernel *Kernel     // set for a kernel function
	Load   *KernelLoad // relocation of the kernel, for a frame with an address
	Code   []byte      // the code at the address; nil if the line does not list it
	// listing around the instruction of a kernel function, filled in by a later line; nil if no
	// listing is awaited
	Listed *Code

	// Optional is set if the number may be something other than an address. It is then a frame only
	// if the file has code at the number.
	Optional bool
	Unsure   bool // an address on a kernel's stack, perhaps left by an earlier call

	// Apart is set if lines without frames precede the frame's line, or if consecutive lines of its
	// dialect are not callers of each other. A frame without a number then begins a new stack.
	Apart bool

	// Awaits is set if a later line of the report may have the module's build ID.
	Awaits bool

	// NoModule is the reason why the address has no known module; nil means ErrNoModule of package
	// judge.
	NoModule error
	Unread   error // why frames of this kind are never located; nil if they can be
}

// A Rewrite describes the edits that print the answer in a frame's line.
type Rewrite struct {
	// Start is the offset of the frame in the line. Lines for inlined calls repeat the text before
	// Start.
	Start int

	// Digits is the part of the line with the frame's number. It is empty unless inlined calls
	// change later frames' numbers, as in the producer's own output.
	Digits Span

	// First is the part of the line with a word that becomes Later on the lines added by
	// InlineFrames.
	First Span
	Later string

	// Depth is the part of the line for the depth of an inlined call, for InlineDotted.
	Depth Span

	// Edits are the edits that print the answer, in line order.
	Edits  []Edit
	Inline Inline

	// Below, if not empty, precedes the answer on an additional line after this one, which may have
	// several frames.
	Below string

	// Named is set if the line already has its answer, or cannot have one: only its number changes.
	Named bool

	// PlaceBelow is set if the producer prints the file and line of a resolved frame on the next
	// line. If Placed finds them there, nothing is added.
	PlaceBelow bool

	// Wraps is set if the module may be on the next line, where Continue reads it.
	Wraps bool

	// Unframed is set for an address of code or data outside of a frame. The answer replaces the
	// Span of its only Edit.
	Unframed bool

	// Footnote is set if the line must not change: the answer follows the maps of the process.
	Footnote bool
}

// A Symbol is the symbol near a frame's address, as printed in the log.
type Symbol struct {
	Name   string // mangled or demangled; empty if the line has none
	Offset int64  // offset of the frame's address in the symbol
	Size   uint64 // minimum size of the symbol; 0 if the line has none
	Inside bool   // Offset is unknown: the address is anywhere in the symbol
}

// A Span is a part of a line.
type Span struct{ From, To int }

// A Part is the text that an Edit inserts into a line.
type Part uint8

const (
	Name     Part = iota // the function; with +0xOFFSET if the answer has no line
	Func                 // the function alone
	Rename               // Name, if the line has no name there, or another function's
	BareFunc             // Func without the prefix of a sanitizer's interceptor
	Callers              // " inlined into f file:line:column" for each call around the innermost
	Nothing              // empty: the Edit removes text
	// like Nothing, but only in the frames of callers: the innermost frame keeps the text
	NothingInCalls
	Decimal  // like Name, with a decimal offset
	Spaced   // like Name, with blanks: f + 0x12
	JSONFunc // the function, as a JSON string
	Inlined  // the function if it is inlined there; if not, the Edit has no effect
	AtLine   // file:line
	AtSpaced // file : line
	AtColumn // file:line:column, or file:line if the column is unknown
	AtBase   // file:line, without the file's directories
	// the function, if it differs from Frame.Symbol and the answer has a line
	Other
	AtSource // AtColumn without a leading "./", and without a line that is 0
	FuncAt   // the function alone, if the answer has a line
	// "f at file:line" for each call, innermost first, as JSON strings separated by commas
	Strings
	// members of a JSON object, for Frame.Symbol if it has a name: "source_file": "file",
	// "source_line": line, "inlined_by": ["f at file:line"], "inlined": ["g at file:line"]
	JSONSource
)

// An Edit replaces a part of the line with Before, the Part of the answer, and After. An Edit that
// inserts a file and line has no effect if the answer has no line. An Edit with BareFunc has no
// effect if the answer has no function.
type Edit struct {
	Span
	Before string
	Part   Part
	After  string
}

// An Inline selects how the inlined calls at an address are printed. The zero value prints them as
// addr2line does.
type Inline uint8

const (
	// InlinedBy shows the innermost call on the logged line. Each call around it has a further line
	// with the text before the frame and " (inlined by) f at file:line".
	InlinedBy Inline = iota
	// InlinedByBefore is InlinedBy for traces with the newest call last: the additional lines come
	// first.
	InlinedByBefore
	// InlineFrames repeats the line for each call, innermost first, as separate frames.
	InlineFrames
	// InlineMarked shows the physical function on the logged line. Each call inlined into it has a
	// line before that, innermost first, as in kernel logs: "f file:line [inline]".
	InlineMarked
	// InlineBelow is InlinedBy in Rust's form: the line after each call has its file and line, and
	// only the innermost call has a number and an address.
	InlineBelow
	// Innermost prints only the innermost call.
	Innermost
	// InlineDotted is InlineFrames with the frame's number on all lines: an inlined call adds its
	// depth, as in "#3.1".
	InlineDotted
	// InlineNumbered shows the physical function on the logged line. Each call inlined into it has
	// a line before that, innermost first, as in ClickHouse: "N.K. inlined from file:line: f".
	InlineNumbered
)

// A Dialect is a form in which programs, the producers of the frames, print backtraces.
type Dialect struct {
	Name   string // for --dialects
	Who    string // the programs, in a few words
	Needs  string // the facts needed to resolve a frame
	Sample string // a frame as printed in a log

	OnDemand bool // not part of --dialects=auto

	// FramePointers is set if the program unwinds its own stack at a fault, if necessary by frame
	// pointers. A stack's last frame may then be outside all code; the first is at an instruction.
	FramePointers bool

	Subtracts Subtraction // the subtraction from return addresses, if it depends on the machine
}

// A Subtraction is the rule by which a producer on a device moves return addresses into the call.
// How many bytes a rule subtracts depends on the machine.
type Subtraction uint8

const (
	AsCalled    Subtraction = iota // nothing beyond Frame.Call
	LessESPIDF                     // ESPLess on Xtensa; on RISC-V only from the address for abort
	LessESPRust                    // ESPLess on Xtensa, 4 on RISC-V; nothing in old versions
)

// Placed reports whether next, the line after f's, has the file and line of f, or its build ID. The
// forms are "at file:line" in Rust, "file:line" or "-> file" in folly, and an ID in brackets in
// eu-stack -b.
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
