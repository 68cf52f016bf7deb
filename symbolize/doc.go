// Package symbolize returns the source positions of code, or the variable, at a location: a build
// ID and a module-relative address.
//
// A [Symbolizer] asks its [Finder]s for the debug file of a build ID, once for all questions, keeps
// the file open while it is used, and reads only the parts that the answers need. The memory it
// holds stays under a budget.
//
// # Which file is used
//
// The search asks the finders in order, then follows the debug link of a stripped file, then asks
// the servers. The first file with debug information is used and ends the search; without any, the
// best of the others is: one with a full symbol table before one with dynamic symbols only, the
// earlier finder before the later. A file that cannot be read is noted and passed over.
//
// # What outlives what
//
//   - A miss is remembered for [retryMiss]; the first question after that starts another search in
//     the background, and gets the remembered miss at once. The time doubles, up to a minute, while
//     a finder is out of order, that is, fails otherwise than by a plain miss.
//   - A file without debug information answers by its symbols. The first question after 5 s,
//     doubling up to a minute, starts a search for a better one in the background, which replaces
//     it.
//   - A file that can no longer be read is closed. Debug information that made
//     its reader panic, a second time used up what a lookup may cost, or takes
//     more steps than its answers are worth, is left alone, and the file's
//     symbols answer. After the first strike the file is
//     looked at again soon; from the second on after 10 minutes, doubling up to
//     a day. Strikes are the module's, whatever file it has.
//   - Debug information for which there is no memory is left alone for 5 s,
//     doubling up to a minute.
//   - Under memory pressure modules without a file are forgotten, and their
//     strikes with them.
//   - Strings in answers are copies: they are valid after Close.
package symbolize

import (
	"time"
)

// Limits, one a line, with unit and reason.
const (
	DefaultMaxMemory = 512 << 20 // bytes of memory; a quarter of what LLVM's symbolizer takes for one big C++ program

	maxMapped     = 32768    // files mapped at once: half of the kernel's default vm.max_map_count
	maxModuleName = 4 << 10  // bytes kept of a module's name: a longer one is not a path
	maxQueued     = 1024     // searches and inflations that run or wait; a goroutine each
	entryCost     = 512      // bytes of an entry, without its strings
	attemptCost   = 64       // bytes of a remembered attempt, without its strings
	maxEntries    = 131072   // build IDs remembered: two processes' worth of the filter's module limit
	maxFinding    = 64       // searches on this machine at once: enough to hide a disk's latency, few enough descriptors
	maxOpenFiles  = 512      // files kept by descriptor because they cannot be mapped: half of the usual descriptor limit
	maxNames      = 4        // module names tried for one build ID
	maxAttempts   = 64       // attempts remembered for one build ID
	maxSaid       = 512      // bytes of one remembered attempt
	maxName       = 64 << 10 // bytes of a symbol's name; the rest of a longer one is cut off
	maxStrikes    = 2        // times that debug information may exceed a reader's bound before it is left alone
	accountEvery  = 64       // lookups after which a file's footprint is taken, which walks over all its parsed units; and after the 1st, 2nd, 4th, 8th…
	nameOverhead  = 128      // bytes a remembered name costs beside its text

	retryMiss  = 2 * time.Second  // after which a missing file is looked for again: about as long as a person waits after adding it
	betterMin  = 5 * time.Second  // after which a file better than one without debug information is looked for, doubling
	betterMax  = time.Minute      // bound of the times that double
	reopenWait = time.Second      // for which every question waits for a file that was closed to save memory
	asideMin   = 10 * time.Minute // a file that broke its reader twice is left alone
	asideMax   = 24 * time.Hour

	accountSpent = 2 * time.Millisecond // spent in lookups, after which the footprint is taken too: they can have parsed a few megabytes

	// What the debug information of one file may cost. A step of its reader takes 3 to 10 ns.
	answerSteps = 1 << 16 // steps of a question that are worth its answer: 0.2 to 0.6 ms. Files of 300 MiB take 10,000 on average, even if their units do not fit the memory
	maxOwed     = 1 << 28 // steps beyond that: 1 to 2.5 s. Files of 300 MiB owe 30 million when most of their units were parsed for the first time
	indexSteps  = 16      // steps, for each byte of debug information, that making an index may take beside: some 2 are needed

	// Sections that were released for lack of memory may be inflated again, up to these bounds.
	maxCrowded  = 2 << 30  // bytes inflated again beyond what answers have paid for: 4 s
	answerBytes = 16 << 10 // bytes that an answer pays for: 40 µs

	spareShare   = 16                     // 1/16 of the budget is never granted: it is for the units that running lookups parse, which are counted afterwards
	maxWhole     = 32 << 10               // bytes of a file that is read whole, not mapped
	wholeShare   = 4                      // while a quarter of the budget is in use, none is
	maxInflating = 2                      // files inflated at a time, each by several goroutines: the first is ready before all are half done
	maxInline    = 16 << 20               // most bytes that are inflated while a line waits: 40 ms
	maxPart      = 512 << 20              // bytes of compressed sections of a split or supplementary file: 1 s
	smallHeap    = 64 << 10               // bytes of a file below which closing it gains too little
	tellEvery    = 8 << 20                // bytes of change that OffHeap need not report
	admitWait    = 10 * time.Second       // for memory that others hold: five times as long as inflating a GiB takes
	admitAgain   = 100 * time.Millisecond // between two looks at what others could release
	freshFor     = time.Second            // for which inflated sections without a lookup yet are not released
)
