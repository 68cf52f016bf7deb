// Package faults reads the faults in a log: reports of sanitizers and messages of crashes. A
// [Finder] makes findings of them. [Role], [Within] and [Kind] give printers the meaning of a
// backtrace in a log.
package faults
