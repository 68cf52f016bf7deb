// Package buildid names one build of a program, and finds its files on this machine.
//
// A build ID is a note that the linker writes into a program or library (NT_GNU_BUILD_ID, owner
// "GNU"), usually a hash of 20 bytes. The separate debug file has the same note. An [ID] holds
// these bytes; [Read] reads them from a file. Finders look for the files of an ID:
//
//   - [Tree]: a GNU tree of debug files, DIR/.build-id/ab/cdef….debug, and the trees of Fuchsia's
//     build and Sentry's symsorter
//   - [SymbolPath]: any files, directories and zip files, indexed by the notes inside them
//   - [IDsFile]: the list ids.txt of Fuchsia's build
//   - [ModulePath]: the path in the log
//
// Each has the method
//
//	Find(ctx context.Context, q Query, note func(Attempt)) (*File, error)
//
// A returned [File] is open, and its note was read through the same descriptor. No finder returns a
// file whose note holds another ID. If note is not nil, it is called for each place without the
// file. The error for a missing file wraps [fs.ErrNotExist]. After any other error (a canceled
// context, no descriptors left) the file may exist: callers must not remember it as missing.
package buildid
