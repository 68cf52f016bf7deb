// Package report has the parts that readers of foreign reports share: the object files that a
// report names, the wait for their debug files, and the memory of reports. It also spells function
// names as Valgrind's tools do, and counts unresolved frames.
//
// A reader embeds [Options] in its own, and makes an [Objects] and an [Asker] of them. The Asker
// returns the frames at a module-relative address of an [Object]. The filter of logs has no report,
// and uses [Patience] and [Objects].
//
// Only [Budget] and [Files] are safe for concurrent use.
package report
