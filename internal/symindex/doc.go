// Package symindex reads and writes a compact file, the index of one build ID. The index has the
// functions, files and lines of code addresses, and the symbols. It is read in place from a mapped
// file.
//
// # The file
//
// All numbers are little-endian. A header of 512 bytes identifies the source of the index, and
// holds the positions of the sections. The header and each block of 64 KiB have a checksum
// (CRC-32C); the list of the blocks' checksums ends the file. The header and that list are checked
// when the file is opened, and a block when it is first read. Damaged parts are never used: the
// caller uses the source instead.
//
//	unit data       the calls of each unit, and blocks of rows; a block follows the calls of its rows
//	span directory  the unit of a stretch of addresses
//	units           the offsets and sizes of each unit's parts
//	row directory   the block of an address
//	names, files    strings, each once, and their directories; units list their numbers
//	symbols         blocks of symbols, by address, and their directory
//
// A directory finds the last of its entries at or before an address. Its entries are in groups,
// which have addresses of 32 bits, and pages of equal size: a lookup reads the bounds of one page,
// and searches this page.
//
// A name is the linkage name and, if demangling it takes long, the demangled one.
//
// A row has a call, a file, a line and a column, for the code from its address up to the unit's
// next row. A call is a function, or a function inlined into another call. A row's frames are its
// call and all calls around it.
package symindex

const (
	// version changes with the format, the meaning of records, and the output of the demangler and
	// of the reader of debug information. Indexes of other versions are rebuilt.
	version = 6

	headerSize   = 512      // bytes
	blockSize    = 64 << 10 // bytes with one checksum: as many as the kernel maps at a page fault
	rowsInBlock  = 8        // most rows that a lookup decodes; about 5 bytes each
	symsInBlock  = 4        // most symbols that a lookup decodes; about 5 bytes each
	namesInBlock = 8        // most names that a lookup skips, plus one
	maxRowBytes  = 48       // longest row in bytes
	maxSymBytes  = 25       // longest symbol in bytes
	maxCallBytes = 40       // longest call in bytes
	maxNameHead  = 20       // most bytes of the lengths before a name
	pageEntries  = 8        // average entries in a page of a directory
	// largest distance between successive entries of a group: one distant entry would make all
	// pages of its group large
	maxGap    = 1 << 20
	maxFrames = 128 // frames of one address; a source with deeper calls is not indexed
	// largest size of an index in bytes, since offsets have 32 bits; the largest known index has 80
	// MiB
	maxIndexBytes = 4 << 30

	// DefaultBudget bounds all indexes in a Dir by default, in bytes: enough for about 100 large
	// programs.
	DefaultBudget = 4 << 30
)
