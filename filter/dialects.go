package filter

import (
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Dialects select the raw backtraces that are resolved, and their files. The zero value resolves
// all, using the files at paths in the log.
type Dialects struct {
	None bool     // no dialect
	Only []string // names of dialects; nil: all

	// NoPaths prevents opening files at paths in the log. Frames without a build ID then need an
	// Image.
	NoPaths bool

	// Sysroot and PrefixMap translate paths in the log to paths on this machine: see
	// [report.Options].
	Sysroot   string
	PrefixMap []buildid.PrefixMap

	// Folders are absolute paths of folders. They are searched before the system's folders, for a
	// file that the log names without a folder. A file found there needs a stronger proof than a
	// file at its logged path. Such a proof is code that the log lists, or more return addresses
	// after calls.
	Folders []string

	// Candidates are absolute paths of programs and libraries, or of folders with such files. If
	// there are no Images, they are tried for addresses without a module. The calls before return
	// addresses may show where such a file was loaded. At most 24 files are tried, at most three
	// folders deep.
	Candidates []string

	// WorkingFolder, an absolute path, is the folder that relative paths in the log refer to. If it
	// is empty, no relative path is opened.
	WorkingFolder string

	// Images are the operator's files for modules of the log.
	Images []Image

	// Complete, if not nil, returns the only known build ID that begins with prefix, or zero.
	// Minidumps have only the first 16 bytes of an ID.
	Complete func(prefix buildid.ID) buildid.ID

	// Mapped, if not nil, returns the mapping of code at an address in the processes that write the
	// log. It is called for addresses for which the log has neither a build ID nor a load base. It
	// is called from the goroutine that uses the Filter, and must not call the Filter. ok is false
	// if no mapping is certain.
	Mapped func(addr uint64) (m ProcessMapping, ok bool)

	// ForceImages uses the Images even if the log shows that another file ran.
	ForceImages bool

	// Refused, if not nil, is called if the log shows that a file of Images is not the device's
	// program. It is called again only with another reason, or after the device has run the
	// file's program in between.
	Refused func(path string, reason error)

	// Located, if not nil, is called for each frame that is located in a file although its line has
	// no build ID. It is called even if the address has no name. path is the path of the file, addr
	// the address in it, and proof the evidence as --output=json names it.
	Located func(path string, addr uint64, proof string)

	// Taken, if not nil, is called with the path of a file of Images when a frame first has it as
	// its module.
	Taken func(path string)

	// Code adds a disassembly after each line in which Linux lists the code around a failed
	// instruction, for x86-64 and AArch64.
	Code bool

	// KeepRaw appends answers to lines, instead of replacing text.
	KeepRaw bool

	// Elements turns located frames into markup elements, with made-up modules and maps, instead of
	// answers. The rest of the log is printed unchanged. Terminal, Color and Printer of the Options
	// must not be set.
	Elements bool

	// Unwrap appends the texts of lines to dst, with their line ends. Some of the lines may still
	// have the envelopes that they had in [Filter.Text]. It is called for lines that may contain
	// the header of a trace. It is nil if lines have no envelopes.
	Unwrap func(dst, lines []byte) []byte

	// Logged returns the latest time at which the current line may have been written, or zero if
	// this is unknown. It is called when a trace begins. A file at a path in the log that was
	// changed later needs a stronger proof. Nil: the times are unknown.
	Logged func() time.Time

	// NoHold judges each frame using only the frames before it, and never holds lines back. Whole
	// holds a trace back until its later lines arrive, without a time limit, which suits regular
	// files.
	NoHold, Whole bool
}

// An Image is a file that the operator assigns to a module.
type Image struct {
	// name of the module in the log, or the last part of its path; empty: the name of the file
	Name    string
	Path    string // absolute
	Base    uint64 // address of its first page in the process, if HasBase is set
	HasBase bool
}
