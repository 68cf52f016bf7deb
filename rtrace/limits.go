package rtrace

// Limits of the reader and its outputs.
const (
	// bytes of a line without its line end; a longer line becomes several comments
	maxLine = 1 << 20
	// lines of frames at one address, compared to distinguish inlined calls from recursion
	maxRun    = 1 << 10
	maxFields = 64 // fields of a header; sp-rtrace has nine
	// bytes kept of a backtrace's frames; further frames are left out, with a diagnostic
	maxTrace = 1 << 20
	// bytes held back until a frame is resolved; beyond them, the header is printed unchanged
	maxHold   = 16 << 20
	maxObject = 1 << 20  // bytes of a JSON object; longer objects continue in another
	sendSize  = 64 << 10 // bytes of output collected before a write
	maxFiles  = 1024     // files opened; a process maps a few hundred
	// mappings at once; the kernel's default limit for a process is about four times as many
	maxMaps    = 1 << 14
	maxPieces  = 64      // pieces of one mapped segment, and neighbours that are examined
	maxGone    = 1 << 12 // replaced mappings that kept backtraces may refer to
	maxTypes   = 1 << 10 // resource types, and named contexts; the bits of a mask distinguish 64
	maxAnswers = 1 << 14 // addresses whose frames are cached
	maxIndexes = 1 << 22 // indexes in a file of call indexes
)

// Bytes of kept records besides their text.
const (
	callOverhead    = 176 // a call with its entry in a table
	traceOverhead   = 192 // a backtrace with its entry in a table
	commentOverhead = 48
)

// pages are the page sizes of processors, in bytes.
var pages = [...]uint64{4 << 10, 16 << 10, 64 << 10}
