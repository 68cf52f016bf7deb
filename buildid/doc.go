// Package buildid names one build of one program, and finds its files on this machine.
//
// A build ID is the note that the linker leaves in every object it makes (NT_GNU_BUILD_ID, owner "GNU"):
// usually 20 bytes of a hash, the same in a program and in its separate debug file. [ID] is that name;
// [Read] takes it from a file. The finders look an ID up where an operator keeps such files:
//
//   - [Tree]: a GNU tree of debug files, DIR/.build-id/ab/cdef….debug, and the trees of Fuchsia's build and Sentry's
//     symsorter
//   - [SymbolPath]: any files, directories and zip files, indexed by the notes inside them
//   - [IDsFile]: the list ids.txt of Fuchsia's build
//   - [ModulePath]: the path that the log itself names
//
// Each has the method
//
//	Find(ctx context.Context, q Query, note func(Attempt)) (*File, error)
//
// A returned [File] is open, and its note was read through that same open descriptor: no finder returns a file whose
// note names another build, whatever its path promises. note, when not nil, is told of every place that was looked at in vain.
// The error for a file that is not there wraps [fs.ErrNotExist]; any other error (a cancelled context, no
// descriptors left) says nothing about whether the file exists and must not be remembered as a miss.
//
// A file that is found may speak of another: [FindLink] and [FindAlt] look for what .gnu_debuglink and .gnu_debugaltlink
// name.
package buildid
