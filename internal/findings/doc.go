// Package findings holds the errors in the reports of a run: the [Finding], which of its frames are
// the program's own ([Own]), the fingerprint that is equal for the same error in another build
// ([Stack]), and the [Collection] of a run, which merges equal ones. Readers make findings, gates
// compare them, and publishers print them.
//
// No type here may be used by several goroutines at once, except [Own].
package findings
