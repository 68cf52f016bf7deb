// Package gopcln reads the table by which a Go program symbolizes its own backtraces, .gopclntab, in place: functions, files, lines and
// inlined calls, which are there also when symbols and debug information are stripped (-ldflags "-s -w").
//
// [New] finds the table by its section's name, or by its magic number in a file without section headers, and the module data beside
// it, which says where functions begin and where the trees of inlined calls are. Nothing but these few numbers is taken over: [Table.Lookup] searches the mapped
// bytes.
//
// The format has no specification but the Go runtime's source (runtime/symtab.go, internal/abi/symtab.go) and debug/gosym. It is known by
// magic number: that of Go 1.2 to 1.15, of 1.16 and 1.17, of 1.18 and 1.19, and of 1.20 and later. Inlined calls are
// read from Go 1.16 on. What the magic number does not tell (the fields of module data, the size of an entry of a tree) is accepted only
// when what it leads to is consistent.
//
// Every byte is taken as hostile: offsets are checked before they are followed, and all loops end. Nothing here panics on any bytes.
package gopcln

// The limits on what a file may make this package do.
const (
	maxFrames     = 128      // at one address, as for debug information
	maxCandidates = 8        // places that look like a table, or like its module data
	maxTrees      = 32       // trees of inlined calls that are looked at to learn their format
	maxTreeSteps  = 64 << 10 // functions passed over to find those
	maxTable      = 1 << 30  // bytes of a table that is copied to be relocated (Go 1.16 and 1.17, position-independent)
	maxPCSteps    = 4 << 20  // entries of one table of values by program counter
	maxNameBytes  = 16 << 10 // bytes of a function's name, or of a file's
	maxFiles      = 4 << 10  // file names kept
)
