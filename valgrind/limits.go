package valgrind

import "time"

// Limits, one a line, with unit and reason.
const (
	maxRecord  = 4 << 20 // bytes of an element of the report kept at once; 500 callers in five stacks take 1 MiB
	maxLeaf    = 1 << 20 // bytes of one text; a longer one goes on as another
	maxItems   = 1 << 16 // items, and frames, of a record; Valgrind's --num-callers ends at 500
	maxDepth   = 32      // elements within elements; Valgrind's go to 5
	maxName    = 64      // bytes of an element's name
	maxNesting = 64      // documents within a document: processes that share a file
	threadName = 32      // bytes: a thread's name, 16 at most, and its end tag

	maxProcesses = 4096     // of a report known ahead
	maxObjects   = 4096     // files of a process
	maxPath      = 4096     // bytes of a file's name
	maxAddresses = 4096     // of an object in a process kept as facts; 16 are enough as a rule
	maxNames     = 1024     // functions of an object in a process kept as facts
	maxEpochs    = 16       // places where an object was loaded, one after the other
	maxBiases    = 1 << 17  // candidates: the pages of 512 MiB of code
	maxInline    = 128      // inlined calls at one address
	maxOpen      = 256      // object files open at once: each costs a mapping
	maxAnswers   = 1 << 14  // addresses whose frames are remembered
	maxMapFile   = 16 << 20 // bytes of a --map file
	maxSymbols   = 8 << 20  // entries of a symbol table that are looked at
	maxDemangled = 1 << 16  // names of a file that are demangled to find one, 2 µs each
	maxFacts     = 64 << 20 // bytes of what a report says of its objects, all processes together
	factSize     = 128      // bytes that a fact takes, with its place in a map
	epochSize    = 3 << 10  // bytes of an object at a place, without facts
	maxWork      = 1 << 24  // facts held against candidates, 0.5 µs each, and besides
	frameWork    = 32       // for each frame of the report
	maxAsked     = 1024     // candidates for which the symbolizer is asked, 0.1 ms each at first

	nothingHolds = time.Second // that no symbol covers an address: a debug file may come
)
