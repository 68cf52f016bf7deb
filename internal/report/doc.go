// Package report holds the parts that readers of foreign reports share: the object files that a
// report names, the wait for their debug files, function names as Valgrind's tools spell them, and
// the counts of unresolved frames. It also holds what all outputs share: which frames are a
// program's own ([Own]), the fingerprint of a stack ([Stack]), and the errors that a run has found
// ([Findings]).
//
// A reader embeds [Options] in its own, makes an [Objects] and an [Asker] of them, and asks the
// Asker for the frames at a module-relative address of an [Object]. The filter of logs uses only
// [Patience], [Own] and [Stack].
//
// No type here may be used by several goroutines at once, except [Budget] and [Own].
package report
