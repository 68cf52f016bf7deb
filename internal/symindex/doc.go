// Package symindex reads and writes the compact on-disk index of one build ID. The index has the
// functions, files and lines of each code address, and the symbol that covers it. It is read in
// place from a mapped file.
//
// # The file
//
// All numbers are little-endian. A header of 512 bytes identifies the source of the index, and
// holds the positions of the sections. The header has a checksum (CRC-32C), and so has each block
// of 64 KiB; the list of these checksums ends the file. The header and that list are checked when
// the file is opened; a block is checked when it is first read. Damaged parts are never used: the
// caller falls back to the source.
//
//	unit data     the rows of each unit, then its calls
//	span table    stretches of addresses that belong to one unit, and its directory
//	units         the places of each unit's parts
//	row directory the address of every eighth row of a unit
//	names, files  strings, each once, and their directories; units list their numbers
//	symbols       the symbols of the symbol table, by address
//
// A name is the linkage name and, if demangling it takes long, the demangled one.
//
// A row has a call, a file, a line and a column, for the code from its address up to the unit's
// next row. A call is a function, or a function inlined into another call. The frames of a row are
// its call and all calls that it was inlined into.
package symindex

// Limits, with unit and reason.
const (
	// changes with the format, the meaning of records, the output of the demangler and of the
	// reader of debug information. An index of another version is rebuilt
	version = 5

	headerSize   = 512      // bytes
	blockSize    = 64 << 10 // bytes with one checksum: as many as the kernel maps at a page fault
	rowsInBlock  = 8        // most rows that a lookup decodes; about 6 bytes each
	spansInBlock = 16       // most spans that a lookup decodes
	maxRowBytes  = 48       // longest row in bytes
	maxSpanBytes = 32       // longest span in bytes
	maxCallBytes = 40       // longest call in bytes
	maxFrames    = 128      // frames of one address; a source with deeper calls is not indexed
	// bytes of an index, since offsets have 32 bits; the largest seen have 80 MiB
	maxIndexBytes = 4 << 30

	// DefaultBudget is the default maximum size of all indexes in a Dir, in bytes: enough for about
	// 100 large programs.
	DefaultBudget = 4 << 30
)
