// Package report holds the parts that readers of foreign reports share. These are the object files
// that a report names, the wait for their debug files, and the memory that reports may take. The
// package also has function names as Valgrind's tools spell them, and the counts of unresolved
// frames.
//
// A reader embeds [Options] in its own. It makes an [Objects] and an [Asker] of them. The Asker
// returns the frames at a module-relative address of an [Object]. The filter of logs has no report;
// it uses [Patience] and [Objects].
//
// Only [Budget] and [Files] may be used by several goroutines at once.
package report
