// Package faults reads the faults in a log: reports of sanitizers and messages of crashes. A
// [Finder] makes findings of them. For printers that show the log, [Role], [Within] and [Kind]
// return the meaning of a backtrace in it.
package faults
