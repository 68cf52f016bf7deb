// Package object reads one ELF file in place. It maps the file if possible, and bounds every count
// by the file's size.
//
// [Open] reads only the headers and the section names. Section bytes are slices of the mapping.
// [File.Data] inflates compressed sections, once and within limits. [File.Symbol] names an address
// by the rule of llvm-symbolizer. Its first lookups build nothing. If LLVM's table has no symbol,
// it searches the other tables and MiniDebugInfo. [BuildID] reads a file's build ID with a few
// small reads. [File.UnwindRange], [File.CallEndsAt] and [File.SymbolsNamed] are for formats with
// little information about their addresses.
//
// A File is made of layers; a layer uses only the layers below it. From the bottom they are
// contents (the bytes, and memory for copies), headers (sections and segments), sectionData
// (sections inflated and relocated), symbolTables, and File, whose methods need several layers.
// rawSymbols are the entries of one symbol table, callSite is the code before one address.
//
// Every byte of the file may be hostile. Offsets and sizes are checked, without overflow, before
// anything is sliced or allocated. All loops end. Excessive sizes are a [LimitError]. No bytes make
// the package panic, as long as the file keeps its length. A mapped file that another process
// truncates faults when it is read (SIGBUS): callers read from the mapping within [Guard]. [Open]
// and the function [BuildID] read with ReadAt, never from the mapping, and so cannot fault.
// Compressed sections are read with ReadAt too: their decoders may use goroutines of their own.
//
// The format is defined by the System V gABI (ELF-32 and ELF-64, both byte orders), with the GNU
// extensions .zdebug_* and SHT_NOTE build IDs.
package object
