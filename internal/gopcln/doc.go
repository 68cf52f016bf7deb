// Package gopcln reads .gopclntab, the table that a Go program uses for its own backtraces:
// functions, files, lines and inlined calls. The table remains when symbols and debug information
// are stripped (-ldflags "-s -w").
//
// [New] finds the table by its section's name. Otherwise it searches for the magic number, in files
// without section headers and in Go programs from other linkers. Then it looks for the module data,
// which has the start of the text and of the trees of inlined calls. [Table.Lookup] searches the
// mapped bytes. Only a table with relocated addresses, up to Go 1.17, is copied.
//
// The format is specified only by the Go runtime's source (runtime/symtab.go,
// internal/abi/symtab.go) and debug/gosym. It has four versions, each with its magic number: Go 1.2
// to 1.15, 1.16 and 1.17, 1.18 and 1.19, and 1.20 and later. Inlined calls are read for Go 1.16 and
// later. The magic number determines neither the fields of module data nor the size of a tree's
// entries: a layout is accepted only if the data agrees with it.
//
// Every byte may be hostile. Offsets are checked before use, all loops end, and no input makes the
// package panic.
package gopcln

// bounds on the work that a file may cause
const (
	maxFrames     = 128      // frames at one address, as for debug information
	maxCandidates = 8        // offsets tried that look like a table, or like its module data
	maxTrees      = 32       // trees of inlined calls that are read to determine their layout
	maxTreeSteps  = 64 << 10 // functions read to find those trees
	// bytes of a copied and relocated table (position-independent files up to Go 1.17)
	maxTable     = 1 << 30
	maxPCSteps   = 4 << 20  // entries of one table of values by program counter
	maxNameBytes = 16 << 10 // bytes of a function's name, or of a file's
	maxFiles     = 4 << 10  // file names kept
)
