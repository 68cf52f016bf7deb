package callgrind

// Limits of the package.
const (
	maxLine      = 1 << 20  // bytes of a line; a function's name with its callers takes some KiB
	maxName      = 64 << 10 // bytes of a name that are kept: ten times the longest C++ name seen
	maxNames     = 4 << 20  // names of objects, files and functions, all together
	maxIDs       = 1 << 22  // numbers of names in a dense table, 4 bytes each
	maxSparse    = 1 << 18  // names with larger numbers
	maxEvents    = 64       // kinds of events; Callgrind has about 20
	maxEventName = 128      // bytes of an event's name; Callgrind's have up to ten
	maxTerms     = 64       // terms of a calculated event
	maxPositions = 4        // numbers of a position: address, block, line
	maxHeader    = 1 << 12  // lines of the header of a part that are kept
	maxValue     = 4 << 10  // bytes of a header line that are kept

	maxFunctions   = 1 << 19 // functions, with their objects and files
	maxObjects     = 4096    // object files that are opened
	maxDiagnostics = 50      // diagnostics of one kind
	maxThreads     = 1 << 12 // threads, processes and commands that are counted by name

	maxDescriptions = 64 // lines of "desc:" that are shown

	// bytes of a name that is compared with a demangled name, or searched for callers
	maxCompared   = 4 << 10
	maxInline     = 128      // inlined calls at one address
	maxSource     = 64 << 20 // bytes of a source file to show
	maxSources    = 1000     // source files to show
	maxSourceLine = 4 << 10  // bytes of a line of source

	maxFrames      = 1 << 25 // locations of all stacks together
	minFrames      = 1 << 13
	frameCost      = 8   // bytes of heap for each location, with the samples
	placeStackCost = 144 // bytes of heap for each place, if stacks are made
	callStackCost  = 64  // bytes of heap for each call, if stacks are made
)
