package filter

import (
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Dialects select the raw backtraces that are resolved, and their files. The zero value resolves
// all, and uses the files at paths in the log.
type Dialects struct {
	None bool     // no dialect
	Only []string // names of dialects; nil: all

	// NoPaths prevents opening files at paths in the log. A frame without a build ID then needs an
	// Image.
	NoPaths bool

	// Sysroot and PrefixMap translate paths in the log to paths on this machine: see
	// [report.Options].
	Sysroot   string
	PrefixMap []buildid.PrefixMap

	// Folders are absolute paths, searched before the system's folders for a file that the log
	// names without a folder. A file found there needs a stronger proof than a file at its logged
	// path: listed code, or more return addresses after calls.
	Folders []string

	// Candidates are absolute paths of programs and libraries, or of folders with such files.
	// Without Images, they are tried for addresses without a module: calls before return addresses
	// may show where a file was loaded. At most 24 files are tried, at most three folders deep.
	Candidates []string

	// WorkingFolder is the absolute path that relative paths in the log refer to. If it is empty,
	// no relative path is opened.
	WorkingFolder string

	// Images are the operator's files for modules of the log.
	Images []Image

	// Complete, if not nil, returns the only known build ID that begins with prefix, or zero.
	// Minidumps have only the first 16 bytes of an ID.
	Complete func(prefix buildid.ID) buildid.ID

	// Mapped, if not nil, returns the mapping of code at an address in the processes that write the
	// log. It is called for an address without a build ID or load base in the log, from the
	// goroutine that uses the Filter. It must not call the Filter. ok is false if no mapping is
	// certain.
	Mapped func(addr uint64) (m ProcessMapping, ok bool)

	// ForceImages uses the Images even if the log shows that another file ran.
	ForceImages bool

	// Refused, if not nil, is called if the log shows that a file of Images is not the device's
	// program. It is called again only with another reason, or after a frame was located in the
	// file.
	Refused func(path string, reason error)

	// Located, if not nil, is called for each frame whose file was found although its line has no
	// build ID. The address may have no name. addr is the address in the file at path. proof is the
	// evidence, as --output=json names it.
	Located func(path string, addr uint64, proof string)

	// Taken, if not nil, is called for each file of Images, once, when the file is first used as
	// the module of a frame. path is the file's path.
	Taken func(path string)

	// Code adds a disassembly after each line in which Linux lists the code around a failed
	// instruction, for x86-64 and AArch64.
	Code bool

	// KeepRaw appends answers to lines, instead of replacing text.
	KeepRaw bool

	// Elements prints located frames as markup elements, with made-up modules and maps, and does
	// not resolve them. The rest of the log is unchanged. Terminal, Color and Printer of the
	// Options must not be set.
	Elements bool

	// Unwrap appends the texts of lines to dst, with their line ends. In the input of
	// [Filter.Text], lines may still have an envelope: the prefix or object around a line in a
	// container's log or journal. Unwrap is called for lines that may contain a trace's header.
	// Nil: lines have no envelopes.
	Unwrap func(dst, lines []byte) []byte

	// Logged returns the latest time at which the current line may have been written, or zero if
	// unknown. It is called when a trace begins. A file changed after this time needs a stronger
	// proof. Nil: the times are unknown.
	Logged func() time.Time

	// NoHold judges each frame by the frames before it, and holds no lines back. Whole holds a
	// trace back until its later lines arrive, without a time limit: this suits regular files.
	NoHold, Whole bool
}

// An Image is a file that the operator assigns to a module.
type Image struct {
	// name of the module in the log, or the last part of its path; empty: the name of the file
	Name    string
	Path    string // absolute
	Base    uint64 // address of the first page of the file in the process, if HasBase is set
	HasBase bool
}
