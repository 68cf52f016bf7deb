// Package backtrace puts the lines of a log's backtraces together, for printers that show or
// collect them whole: a [Grouping] gets the lines of a filter, and returns each [Stack] when it has
// ended. Its frames are those of the filter's answers, or have the names with which their programs
// have logged them.
package backtrace
