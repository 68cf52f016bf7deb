// Package backtrace puts the lines of a log's backtraces together, for printers that show or
// collect them whole. A [Grouping] gets the lines of a filter, and returns each [Stack] at its end.
// A frame comes from an answer of the filter ([filter.Resolved]), or from the logged text.
package backtrace
