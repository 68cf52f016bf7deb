// Package findings identifies and merges the errors in the reports of a run. A [Finding] is an
// error. An [Own] distinguishes the program's own frames from the system's. A [Stack] makes a
// fingerprint, which is equal for the same error in another build. A [Collection] merges equal
// findings of a run. Readers make findings, gates compare them, and publishers print them.
//
// Only [Own] is safe for concurrent use.
package findings
