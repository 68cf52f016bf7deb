// Package symindex is the compact on-disk index of one build ID: which functions, files and lines each code address belongs to, and which
// symbol covers it, read in place from a mapped file.
//
// # The file
//
// All numbers are little-endian; "uvarint" is encoding/binary's. A header of 512 bytes names the source that the index was made from and says
// where the sections are. The header has a checksum (CRC-32C), and so has each block of 64 KiB: the list of those ends the file. The header and that
// list are checked when the file is opened, a block when it is first touched. What is damaged is never believed: the caller
// falls back to the source.
//
//	unit data     of each unit its rows, then its calls
//	span table    stretches of addresses that belong to one unit, and its directory
//	units         where a unit's parts are
//	row directory the first address of each 8 rows
//	names, files  strings, each once, and their directories; units refer to them by lists of numbers
//	symbols       of the symbol table, by address
//
// A row says that from its address on, up to the next row of the unit, code belongs to a call at a file, line and column. A call is a function
// or what was inlined into another call: a row's frames are its call and all that it was inlined into.
package symindex

// Limits, one a line, with unit and reason.
const (
	version = 1 // of the format, of what the records mean, and of the demangler's output: an index of another is made again

	headerSize    = 512      // bytes
	blockSize     = 64 << 10 // bytes with one checksum: what the kernel maps around a fault
	rowsInBlock   = 8        // rows that a lookup decodes at most: 6 bytes each
	spansInBlock  = 16       // spans that a lookup decodes at most
	maxRowBytes   = 48       // bytes of a row at most
	maxSpanBytes  = 32       // bytes of a span at most
	maxCallBytes  = 40       // bytes of a call at most
	maxFrames     = 128      // frames of one address; a source with deeper ones is not indexed
	maxIndexBytes = 4 << 30  // bytes of an index: offsets of 32 bits. The largest seen have 80 MiB

	// DefaultBudget is how many bytes the indexes of a Dir may take: some 100 large programs.
	DefaultBudget = 4 << 30
)
