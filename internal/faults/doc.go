// Package faults reads the faults in a log: reports of sanitizers and messages of crashes. A
// [Finder] makes findings of them. [Role], [Within] and [Kind] classify backtraces for
// printers.
package faults
