// Package object reads one ELF file in place: mapped if the system can do that, every count bounded
// by the bytes of the file.
//
// [Open] reads the headers and the section names, and nothing else. Section bytes are slices of the
// mapping; compressed sections are inflated once, within limits, when [File.Data] is called for
// them. [File.Symbol] names an address by the rule of llvm-symbolizer. It builds nothing for its
// first lookups. If the table that LLVM uses has no symbol, it searches the other tables and
// MiniDebugInfo. [BuildID] reads the identity of a file with a few small reads. For formats with
// little information about their addresses there are [File.UnwindRange], [File.CallEndsAt] and
// [File.SymbolsNamed].
//
// A File is made of layers; a layer knows only the layers below it. From the bottom they are
// contents (the bytes, and memory for copies of them), headers (sections and segments), sectionData
// (sections inflated and relocated), symbolTables, and File, whose methods need several layers.
// rawSymbols are the entries of one symbol table, callSite is the code before one address.
//
// Every byte of the file may be hostile. Offsets and sizes are checked, without overflow, before
// anything is sliced or allocated. All loops end. Excessive sizes are a [LimitError]. No bytes make
// the package panic, as long as the file keeps its length. A mapped file that another process
// truncates faults when it is read (SIGBUS): callers read from the mapping within [Guard]. [Open]
// and the function [BuildID] read with ReadAt, never from the mapping, and so cannot fault.
// Compressed sections are read with ReadAt too, since their decoders may use goroutines of their
// own.
//
// The format is defined by the System V gABI (ELF-32 and ELF-64, both byte orders), with the GNU
// extensions .zdebug_* and SHT_NOTE build IDs.
package object
