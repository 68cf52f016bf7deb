// Package report holds the parts that readers of foreign reports share: the object files that a
// report names, the wait for their debug files, the memory that reports may take, function names as
// Valgrind's tools spell them, and the counts of unresolved frames.
//
// A reader embeds [Options] in its own, makes an [Objects] and an [Asker] of them, and asks the
// Asker for the frames at a module-relative address of an [Object]. The filter of logs has no
// report; it uses [Patience] and [Objects].
//
// No type here may be used by several goroutines at once, except [Budget].
package report
