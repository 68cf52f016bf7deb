// Package backtrace puts the lines of a log's backtraces together, for printers that show or
// collect them whole: a [Grouping] gets the lines of a filter, and returns each [Stack] when it has
// ended. Its frames are from the filter's answers, or have the names that their programs have
// logged.
package backtrace
