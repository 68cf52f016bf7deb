package rtrace

// Limits, one a line, with unit and reason.
const (
	maxLine    = 1 << 20  // bytes of a line, without its end, that is read; of a longer one each part is a comment
	maxRun     = 1 << 10  // lines of frames at one address that are compared, to tell inlined calls from recursion
	maxFields  = 64       // of a header; there are nine
	maxTrace   = 1 << 20  // bytes of the frames of a backtrace that are kept; more stay out, with a diagnostic
	maxHold    = 16 << 20 // bytes that wait for the first frame with a name, before the header goes out as it is
	maxObject  = 1 << 20  // bytes of an object of JSON, after which it goes on as another
	sendSize   = 64 << 10 // bytes that are written at once
	maxFiles   = 1024     // files that are looked at: a process has some hundred
	maxMaps    = 1 << 14  // mappings at once; the kernel's default limit for all of a process is four times as many
	maxPieces  = 64       // mappings that may be one segment, and neighbours that are looked at
	maxGone    = 1 << 12  // mappings that others replaced, and that kept backtraces may still mean
	maxTypes   = 1 << 10  // resource types; they are bits of a word
	maxAnswers = 1 << 14  // addresses whose frames are remembered
	maxIndexes = 1 << 22  // indexes of calls in a file of them
	maxTold    = 1 << 10  // diagnostics, each of which is told once
)

// What a record costs beside its bytes, in bytes.
const (
	callOverhead    = 176 // a call with its place in a table
	traceOverhead   = 192 // a backtrace with its place in a table
	commentOverhead = 48
)

// pages are the sizes of pages that processors have, in bytes.
var pages = [...]uint64{4 << 10, 16 << 10, 64 << 10}
