// Package symbolize returns the source positions of code, or the variable, at a location: a build
// ID and a module-relative address.
//
// A [Symbolizer] asks its [Finder]s for the debug file of a build ID once for all questions. It
// keeps the file open for further questions, and reads only the parts that the answers need. Its
// memory stays under a budget.
//
// # Which file is used
//
// The search asks the finders in order, then follows the debug link of a stripped file, then asks
// the servers. The first file with debug information ends the search and is used. If no file has
// debug information, a full symbol table is preferred to dynamic symbols only, and earlier finders
// to later finders. A file that cannot be read is noted and skipped.
//
// # How long state is kept
//
//   - A miss is remembered for 2 s. The first question after that starts another search in the
//     background, and gets the remembered miss at once. The time doubles, up to a minute, while a
//     finder fails with an error other than a plain miss.
//   - A file without debug information answers from its symbols. The first question after 5 s
//     starts a search for a better file in the background. The time doubles, up to a minute.
//   - A file that can no longer be read is closed.
//   - The debug information of a file is set aside, and the file's symbols answer, if its reader
//     panics, if two lookups exceed their bound, or if lookups take more steps than their answers
//     are worth. Each panic and each lookup beyond its bound is a strike; too many steps count as
//     the second strike at least. The file is tried again 2 s after a first strike, 10 minutes
//     after the second, doubling up to a day. Strikes belong to the module and outlive its file.
//   - Debug information that does not fit into memory is set aside for 5 s. The time doubles, up to
//     a minute.
//   - Under memory pressure modules without a file are forgotten, with their strikes.
//   - Strings in answers are copies: they are valid after Close.
package symbolize

import (
	"time"
)

const (
	// DefaultMaxMemory is the default of Options.MaxMemory, in bytes. LLVM's symbolizer takes four
	// times as much for one big C++ program.
	DefaultMaxMemory = 512 << 20

	maxMapped     = 32768   // files mapped at once: half of the kernel's default vm.max_map_count
	maxModuleName = 4 << 10 // bytes kept of a module's name: a longer name is not a path
	maxQueued     = 1024    // searches and inflations that run or wait; a goroutine each
	entryCost     = 512     // bytes of an entry, without its strings
	attemptCost   = 64      // bytes of a remembered attempt, without its strings
	// build IDs remembered: two processes' worth of the filter's module limit
	maxEntries = 131072
	// searches on this machine at once: enough to hide a disk's latency, without many descriptors
	maxFinding = 64
	// files that cannot be mapped and keep a descriptor: half of the usual descriptor limit
	maxOpenFiles = 512
	maxNames     = 4        // module names tried for one build ID
	maxAttempts  = 64       // attempts remembered for one build ID
	maxSaid      = 512      // bytes of each text of a remembered attempt
	maxName      = 64 << 10 // bytes of a symbol's name; longer names are cut off
	// strikes after which debug information is set aside; a strike is a lookup that exceeded a
	// bound or panicked
	maxStrikes = 2
	// lookups in a file between two measurements of its footprint: a measurement visits all parsed
	// units. Further measurements follow the 1st, 2nd, 4th, 8th… lookup
	accountEvery = 64
	nameOverhead = 128 // bytes of a remembered name, without its text

	// time until a missing file is searched for again: about as long as a person waits after adding
	// it
	retryMiss = 2 * time.Second
	// time until a file with debug information is searched for again, if the file in use has none;
	// doubles
	betterMin = 5 * time.Second
	betterMax = time.Minute // upper bound of retry times that double
	// how long a question waits, whatever its context, for a file that was closed to save memory
	reopenWait = time.Second
	// how long a file is set aside after maxStrikes strikes; doubles
	asideMin = 10 * time.Minute
	asideMax = 24 * time.Hour

	// time in lookups after which the footprint is measured, too: the lookups may have parsed a few
	// megabytes
	accountSpent = 2 * time.Millisecond

	// steps that a question may take: 0.2 to 0.6 ms, since a step takes 3 to 10 ns. In files of 300
	// MiB a question takes 10,000 steps on average, even if their units do not fit in memory
	answerSteps = 1 << 16
	// steps that a file may owe beyond answerSteps for each question: 1 to 2.5 s. Files of 300 MiB
	// owe 30 million steps after most of their units were parsed for the first time
	maxOwed = 1 << 28
	// steps that making an index may take for each byte of debug information, in addition to
	// maxOwed: about 2 are needed
	indexSteps = 16

	// bounds for inflating released sections again; sections are released for lack of memory
	maxCrowded  = 2 << 30  // bytes inflated again, beyond answerBytes for each answer: 4 s
	answerBytes = 16 << 10 // bytes that may be inflated again for each answer: 40 µs

	// 1/16 of the budget is never granted, since running lookups parse units whose memory is
	// counted only afterwards
	spareShare = 16
	maxWhole   = 32 << 10 // bytes of a file that is read whole, not mapped
	// no file is read whole while more than a quarter of the budget is in use
	wholeShare = 4
	// files inflated at a time, each by several goroutines: with few, the first files are ready
	// early
	maxInflating = 2
	// bytes that may be inflated while a log line waits: 40 ms
	maxInline = 16 << 20
	maxPart   = 512 << 20 // bytes of compressed sections of a split or supplementary file: 1 s
	// files that hold fewer bytes stay open: closing them frees too little
	smallHeap = 64 << 10
	// OffHeap is called after its figure has changed by this many bytes
	tellEvery = 8 << 20
	// longest wait for memory that other files hold: five times the time to inflate a GiB
	admitWait = 10 * time.Second
	// interval of checks whether other files can release memory
	admitAgain = 100 * time.Millisecond
	// how long inflated sections without a lookup are kept
	freshFor = time.Second
)
