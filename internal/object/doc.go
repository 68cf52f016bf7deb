// Package object reads one ELF file in place: mapped where the system can, every count bounded by the bytes that are there.
//
// [Open] reads the headers and nothing else. Section bytes are slices of the mapping; compressed ones are inflated
// once, within limits, when asked for by [File.Data]. [File.Symbol] names an address by the rule of llvm-symbolizer
// without building anything for its first lookups, and goes on in the other tables and MiniDebugInfo where LLVM's has nothing. [BuildID] takes
// the identity of a file with a few small reads. For formats that say little about their addresses there are [File.UnwindRange], [File.CallEndsAt]
// and [File.SymbolsNamed].
//
// Every byte of the file is taken as hostile: offsets and sizes are checked without overflow before anything is sliced
// or allocated, all loops end, and what is too large is a [LimitError]. Nothing here panics on any bytes of a file that keeps its
// length. A mapped file that another process truncates faults when it is touched (SIGBUS): callers that read from
// the mapping do so under [runtime/debug.SetPanicOnFault] and recover. Headers, notes and compressed sections are read
// by ReadAt, never from the mapping, so that Open and BuildID cannot fault.
//
// The format is that of the System V gABI (ELF-32 and ELF-64, both byte orders), with the GNU extensions .zdebug_* and SHT_NOTE
// build IDs.
package object
