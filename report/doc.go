// Package report holds what the readers of foreign reports share: the object files that a report
// names, the wait for their debug files, function names as Valgrind's tools spell them, and the
// frames that stayed unresolved.
//
// A reader embeds [Options] in its own, makes an [Objects] and an [Asker] of them, and asks the
// Asker for the frames at a module-relative address of an [Object]. The filter of logs shares the
// waiting alone: [Patience].
//
// Nothing here is for several goroutines at once.
package report
