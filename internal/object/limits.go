package object

import (
	"fmt"
	"math/bits"
)

// The limits on what a file may make this package do. Each is far above what compilers and linkers write.
const (
	maxSections  = 4 << 16  // headers; -ffunction-sections objects reach some 100,000
	manySections = 256      // from which on they are found by a map
	maxSegments  = 4 << 16  // headers; core files of many mappings pass 65,535 by PN_XNUM
	maxNames     = 16 << 20 // bytes of section names read
	maxName      = 4 << 10  // bytes of one section name; longer ones are cut: they are nothing that is looked up

	maxNotes = 1 << 20 // bytes of notes searched for a build ID; vmlinux has 500, a core file may have gigabytes
	maxID    = 64      // bytes of a build ID: a SHA-512

	maxLink        = 8 << 10  // bytes of .gnu_debuglink and .gnu_debugaltlink: a path is at most 4 KiB
	maxPackageNote = 16 << 10 // bytes of a package note; real ones have 200

	maxRatio  = 1000     // to 1; deflate cannot do better than 1,032:1, real debug sections stay below 20:1
	ratioFree = 16 << 20 // bytes that may be inflated whatever the ratio
	// and of all sections of a file that are asked for: their debug sections stay below 10 to 1
	maxRatioFile  = 32
	ratioFreeFile = 1 << 30   // bytes of all sections inflated whatever that ratio: 2 s
	maxWindow     = 128 << 20 // bytes of history a zstd frame may ask for: what zstd's own decoder accepts unasked
	minWindow     = 8 << 20   // bytes of history always granted: frames of unknown length ask for their level's window

	// bytes of one section held on the heap: 4 GiB, and 512 MiB where an address has 32 bits
	maxHeapSection = 1 << (29 + 3*(bits.UintSize/64))

	maxMini       = 128 << 20 // bytes of MiniDebugInfo, inflated: the symbol table of a binary of a gigabyte
	maxDictionary = 64 << 20  // bytes of history that a block of xz may ask for: that of xz -9
	// bytes of history that all blocks of xz may ask for, one after the other, beside as many as they hold
	maxDictionaries = 256 << 20

	linearNames    = 4         // searches for a name that pass over the table: the list of hashes costs as much as 20
	maxNameHashed  = 64 << 10  // bytes of a symbol's name that can be searched for
	maxNamesHashed = 256 << 20 // bytes of names hashed in all, beside twice the bytes that there are: where names overlap no list is made
	maxNamed       = 4 << 10   // symbols of one name

	maxUnwind = 16 << 20 // functions of unwind information; Chromium has 1 million
	maxCommon = 64 << 10 // common entries of .eh_frame whose encoding is remembered; a linker leaves one for each kind

	minArena  = 64 << 10 // bytes that are worth a mapping of their own
	minSpill  = 1 << 20  // bytes of sections that are worth a file
	spareDisk = 1 << 30  // bytes of a file system that are left to others

	maxPlaces      = 1 << 20  // fields that are relocated to code, of which a line table has one for each function: 24 MiB
	maxRelocations = 64 << 20 // applied to one section; a large kernel module has 1 million

	linearLookups = 16       // symbol lookups answered by a pass over the raw table: building the sorted one costs as much as 12 passes
	linearSymbols = 16 << 20 // symbols passed over before that, however few the lookups: 0.1 s
	maxSymbols    = 16 << 20 // symbols of a table that are looked at; Chromium has 2 million
)

// A LimitError is something in a file beyond what this package is willing to do for it.
type LimitError struct {
	What     string // what was counted, with its unit: "bytes of section .debug_info, inflated"
	Got, Max uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s: the limit is %d", e.Got, e.What, e.Max)
}

// A FormatError is a place where the bytes are not those of an ELF file.
type FormatError struct {
	What string // the part that is wrong: "ELF header"
	Said string // how
}

func (e *FormatError) Error() string { return e.What + ": " + e.Said }
