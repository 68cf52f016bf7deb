package valgrind

import "time"

// Limits of the package.
const (
	maxRecord  = 4 << 20 // bytes of a record kept at once; 500 callers in five stacks take 1 MiB
	maxLeaf    = 1 << 20 // bytes of a text; longer texts are divided
	maxItems   = 1 << 16 // items, and frames, of a record; Valgrind's --num-callers ends at 500
	maxDepth   = 32      // depth of elements within elements; 5 in Valgrind's reports
	maxName    = 64      // bytes of an element's name
	maxNesting = 64      // depth of documents within documents: processes that share a file
	maxIndent  = 64      // bytes of blanks before a record in its line that are kept
	threadName = 32      // bytes of a thread's name, 16 at most, with its end tag

	maxProcesses = 4096 // processes of a report that is read ahead
	maxObjects   = 4096 // object files of a process
	maxPath      = 4096 // bytes of a file's name
	// addresses kept as facts, per object and process; 16 are usually enough
	maxAddresses = 4096
	maxNames     = 1024     // functions kept as facts, per object and process
	maxEpochs    = 16       // successive load addresses of an object
	maxBiases    = 1 << 17  // candidates for a load bias: the pages of 512 MiB of code
	maxInline    = 128      // inlined calls at one address
	maxOpen      = 256      // object files open at once, each with a mapping
	maxAnswers   = 1 << 14  // addresses whose frames are kept
	maxMapFile   = 16 << 20 // bytes of a --map file
	maxSymbols   = 8 << 20  // entries read of a symbol table
	maxDemangled = 1 << 16  // names of a file that are demangled to find one, 2 µs each
	maxFacts     = 64 << 20 // bytes of all facts, of all processes together
	factSize     = 128      // bytes of a fact, with its entry in a map
	epochSize    = 3 << 10  // bytes of an epoch without facts
	maxWork      = 1 << 24  // comparisons of a fact with a candidate, 0.5 µs each
	frameWork    = 32       // further comparisons for each frame
	maxAsked     = 1024     // candidates for a bias passed to the symbolizer, 0.1 ms each at first

	// lifetime of the answer that no symbol covers an address: a debug file may arrive
	nothingHolds = time.Second
)
