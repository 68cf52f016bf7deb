// Package access gives the packages of this module methods of public types that are not part of
// their API: the filter asks a Symbolizer in ways that pay only with the filter's own order, and
// the readers of envelopes drive a Filter line by line.
//
// The package of a type sets its variable before any program can have a value of it. A caller asserts
// what it is given to an interface of the methods that it needs, which stands beside the caller.
package access

var (
	// Symbolizer returns the methods of a *symbolize.Symbolizer.
	Symbolizer func(s any) any

	// Filter returns the methods of a *filter.Filter, or nil for any other f.
	Filter func(f any) any

	// Valgrind and Rtrace return the further constructors of a report reader's *Options:
	// NewFindings and, for Valgrind, NewPlaces, which returns a profile.Places.
	Valgrind, Rtrace func(o any) any

	// Contexts returns the contexts of many logs by their keys, within the filter.Limits l, for the
	// records that a filter.Lines filters: Of(key []byte) *filter.Context, AppendProcesses and
	// Restore. evicted is called as filter.Options.Evicted is; it may be nil.
	Contexts func(l any, evicted func(key, reason string)) any
)
