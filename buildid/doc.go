// Package buildid names one build of one program, and finds its files on this machine.
//
// A build ID is a note that the linker writes into every object it makes (NT_GNU_BUILD_ID, owner
// "GNU"): usually 20 bytes of a hash, the same in a program and in its separate debug file. An [ID]
// holds these bytes; [Read] reads them from a file. The finders look for the files of an ID where
// operators keep them:
//
//   - [Tree]: a GNU tree of debug files, DIR/.build-id/ab/cdef….debug, and the trees of Fuchsia's
//     build and Sentry's symsorter
//   - [SymbolPath]: any files, directories and zip files, indexed by the notes inside them
//   - [IDsFile]: the list ids.txt of Fuchsia's build
//   - [ModulePath]: the path that the log itself names
//
// Each has the method
//
//	Find(ctx context.Context, q Query, note func(Attempt)) (*File, error)
//
// A returned [File] is open, and its note was read through the same descriptor. No finder returns a
// file whose note holds another ID. If note is not nil, it is called for every place that was
// searched without success. The error for a missing file wraps [fs.ErrNotExist]. After any other
// error (a canceled context, no descriptors left) the file may exist: callers must not remember it
// as missing.
package buildid
