// Package access gives the packages of this module the methods of a public type that are no part of
// its API: the filter asks a Symbolizer in ways that pay only with the filter's own order, and the
// readers of envelopes drive a Filter line by line.
//
// The package of a type sets its variable before any program can have a value of it. A caller asserts
// what it is given to an interface of the methods that it needs, which stands beside the caller.
package access

var (
	// Symbolizer returns the methods of a *symbolize.Symbolizer.
	Symbolizer func(s any) any
)
