package object

import (
	"fmt"
	"math/bits"
)

// Limits on the work and memory that a file may cause. Each is far above the output of compilers
// and linkers.
const (
	maxSections  = 4 << 16  // headers; -ffunction-sections objects reach about 100,000
	manySections = 256      // least number of sections for which a map finds them by name
	maxSegments  = 4 << 16  // headers; core files of many mappings pass 65,535 by PN_XNUM
	maxNames     = 16 << 20 // bytes of section names read
	// bytes of one section name; longer names are cut: no lookup needs them
	maxName = 4 << 10

	// bytes of notes searched for a build ID or package note; vmlinux has 500, a core file may have
	// gigabytes
	maxNotes = 1 << 20
	maxID    = 64 // bytes of a build ID: a SHA-512

	// bytes of .gnu_debuglink and .gnu_debugaltlink: a path is at most 4 KiB
	maxLink        = 8 << 10
	maxPackageNote = 16 << 10 // bytes of a package note; real notes have 200

	// ratio of inflated to compressed bytes; deflate's limit is 1,032:1, real debug sections stay
	// below 20:1
	maxRatio  = 1000
	ratioFree = 16 << 20 // bytes that may be inflated whatever the ratio
	// ratio for all requested sections of a file; real debug sections stay below 10:1
	maxRatioFile  = 32
	ratioFreeFile = 1 << 30 // bytes of all sections that may be inflated whatever their ratio: 2 s

	// bytes of one section in memory: 4 GiB, or 512 MiB if an int has 32 bits
	maxHeapSection = 1 << (29 + 3*(bits.UintSize/64))

	// bytes of MiniDebugInfo, inflated: as much as the symbol table of a 1 GB binary
	maxMini       = 128 << 20
	maxDictionary = 64 << 20 // bytes of history that a block of xz may need: as much as xz -9
	// bytes of dictionaries of all blocks of xz, in addition to their inflated size
	maxDictionaries = 256 << 20

	// searches for a name that scan the symbol table, before a table of hashes is built: building
	// it costs as much as 4 scans, and a trace has a dozen names
	linearNames = 2
	// searches for the next symbol that scan the symbol table, before a list is built: building it
	// costs as much as 15 scans
	linearNext    = 6
	maxNameHashed = 64 << 10 // bytes of a symbol's name that can be searched for
	// bytes of names hashed for one table, in addition to twice the size of the string table. If
	// overlapping names exceed that, the table is not built
	maxNamesHashed = 256 << 20
	maxNamed       = 4 << 10 // symbols of one name

	maxImports = 4 << 20  // relocations with a symbol; radosgw has 31,000
	maxUnwind  = 16 << 20 // functions of unwind information; Chromium has 1 million
	// common entries (CIEs) of .eh_frame whose encoding is cached; linkers merge equal entries
	maxCommon = 64 << 10

	minArena  = 64 << 10 // smallest size in bytes that gets a mapping of its own
	minSpill  = 1 << 20  // smallest size of sections in bytes that gets a file
	spareDisk = 1 << 30  // bytes of a file system that stay free

	// relocations applied to one section; a large kernel module has 1 million
	maxRelocations = 64 << 20

	// symbol lookups that scan the raw table: building the sorted table costs as much as 12 scans
	linearLookups = 16
	// symbols that all lookups together scan before the sorted table is built: 0.1 s
	linearSymbols = 16 << 20
	// symbols whose scan takes longer than waking up another processor: 0.03 ms
	slowSymbols = 16 << 10
	maxSymbols  = 16 << 20 // symbols of a table that are read; Chromium has 2 million
)

// A LimitError reports that a file exceeds a limit of this package.
type LimitError struct {
	What     string // quantity with its unit: "bytes of section .debug_info, inflated"
	Got, Max uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s: the limit is %d", e.Got, e.What, e.Max)
}

// A FormatError reports bytes that are not valid in an ELF file.
type FormatError struct {
	What string // the part that is wrong: "ELF header"
	Said string // the fault
}

func (e *FormatError) Error() string { return e.What + ": " + e.Said }
