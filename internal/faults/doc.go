// Package faults reads the faults in a log: reports of sanitizers and messages of crashes. A
// [Finder] makes findings of them. Printers that show the log ask for the meaning of a backtrace in
// it: [Role], [Within] and [Kind].
package faults
