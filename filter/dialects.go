package filter

import (
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Dialects select the raw backtraces that are resolved, and the files. The zero value resolves all,
// by the files at the paths in the log.
type Dialects struct {
	None bool     // no dialect
	Only []string // names of dialects; nil: all

	// NoPaths opens no file at a path of the log. Frames without a build ID then need an Image.
	NoPaths bool

	// Sysroot and PrefixMap lead from the paths of the log to those of this machine: see
	// [report.Options].
	Sysroot   string
	PrefixMap []PrefixMap

	// Folders, by absolute path, and after them those of the system, are searched for a file whose
	// name is in the log without its folder. A file found there answers only if the log lists its
	// code, or more calls precede the return addresses than a file at its path needs.
	Folders []string

	// WorkingFolder, an absolute path, is the folder below which the relative paths of the log lead to
	// files. If it is empty, they lead to none.
	WorkingFolder string

	// Images are files that the operator names for modules of the log.
	Images []Image

	// Complete, if not nil, returns the build ID that begins with the bytes of prefix, or zero
	// unless exactly one is known. Minidumps have only the first 16 bytes of an ID.
	Complete func(prefix buildid.ID) buildid.ID

	// ForceImages uses the Images even if the log shows that another file ran.
	ForceImages bool

	// Refused, if not nil, is called if the log shows that a file of Images is not the program of the
	// device: once, and again if the device has run its program in between.
	Refused func(path string, reason error)

	// Taken, if not nil, is called with the path of a file of Images when it is first taken for the
	// module of a frame.
	Taken func(path string)

	// Code prints the code that Linux lists around an instruction that has failed, disassembled, after
	// the line of the listing: of x86-64 and AArch64.
	Code bool

	// KeepRaw appends answers to lines, instead of replacing text.
	KeepRaw bool

	// Elements makes markup of the log instead of answers: located frames become elements, with
	// made-up modules and maps, and everything else is printed unchanged. Terminal, Color and
	// Printer of the Options must not be set.
	Elements bool

	// Unwrap appends the texts of lines to dst, with their line ends. Some of the lines are in the
	// envelopes in which they were given to [Filter.Text]. It is called for lines that may have the
	// header of a trace. It is nil if lines have no envelopes.
	Unwrap func(dst, lines []byte) []byte

	// Logged returns the time by which the current line was written, zero if that is not known. It
	// is called when a trace begins. A file at a path of the log that was changed after that needs
	// more proof. Nil: the times are not known.
	Logged func() time.Time

	// NoHold judges each frame by itself and the frames before it, and never holds lines back.
	// Whole holds a trace back until its later lines have come, without a limit of time, as is
	// right for a regular file.
	NoHold, Whole bool
}

// An Image is a file that the operator names for a module.
type Image struct {
	Name    string // name of the module as logged, or the last part of its path; empty for any module without a file
	Path    string // absolute
	Base    uint64 // address of its first page in the process; valid if HasBase is set
	HasBase bool
}
