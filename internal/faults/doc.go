// Package faults reads what a log reports of faults: the reports of sanitizers and the messages of
// crashes. A [Finder] makes findings of them. Printers that show the log ask what a backtrace in it
// is of: [Role], [Within] and [Kind].
package faults
