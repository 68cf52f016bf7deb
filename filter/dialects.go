package filter

import "github.com/symfilter/symfilter/buildid"

// Dialects set which raw backtraces are resolved, and by which files. The zero value resolves all,
// by the files at the paths of the log.
type Dialects struct {
	None bool     // no dialect
	Only []string // names of dialects; nil: all

	// NoPaths opens no file because the log names its path. Frames without a build ID then need an
	// Image.
	NoPaths bool

	// Sysroot and PrefixMap lead from the paths of the log to those of this machine: see
	// [report.Options].
	Sysroot   string
	PrefixMap []PrefixMap

	// Folders are searched for a file whose name is in the log without its folder, and those of the
	// system after them. A file that is found so answers only if the log lists its code.
	Folders []string

	// Images are files that the operator names for modules of the log.
	Images []Image

	// Complete returns the build ID that begins with the bytes of prefix, zero if none or several are
	// known: minidumps have only the first 16 bytes. It may be nil.
	Complete func(prefix buildid.ID) buildid.ID

	// KeepRaw appends answers to lines, and replaces nothing.
	KeepRaw bool

	// Elements makes markup of the log instead of answers: located frames become elements, with
	// made-up modules and maps, and everything else is printed as it is. Terminal, Color and Printer
	// of the Options must not be set.
	Elements bool

	// Unwrap appends the text of line, a line that was given to [Filter.Text] in an envelope, without
	// its end. It is called for lines that may have the header of a trace. Nil: lines have none.
	Unwrap func(dst, line []byte) []byte

	// NoHold judges each frame by itself and the frames before it, and never holds lines back.
	// Whole holds a trace back for its later lines however long these take, as is right for a
	// regular file.
	NoHold, Whole bool
}

// An Image is a file that the operator names for a module.
type Image struct {
	Name    string // of the module as logged, or the last part of its path; empty: of any module without a file
	Path    string
	Base    uint64 // address of its first page in the process; valid if HasBase is set
	HasBase bool
}
