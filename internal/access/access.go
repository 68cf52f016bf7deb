// Package access lets the packages of this module call functions outside of the public packages'
// API. For example, the readers of envelopes drive a Filter line by line, and the doctor examines
// the cache of a Client.
//
// Each public package sets its variables when it is initialized, before a program can have a value
// of its types. Functions that return any return a value with methods. Callers declare an interface
// with the methods they need, and assert the value to it.
package access

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

var (
	// MayBecomeElement reports whether the tokens of an unfinished line of markup may change
	// with later bytes. UnfinishedSGR returns the length of the unfinished colour sequence at
	// the end of b.
	MayBecomeElement func(tail []byte) bool
	UnfinishedSGR    func(b []byte) int

	// Symbolizer returns a value with the internal methods of s, a *symbolize.Symbolizer.
	Symbolizer func(s any) any

	// IndexFile makes the index of the ELF file at path. An existing good index is kept unless
	// o.Again is set. For a file that cannot have an index, the error wraps ErrNotIndexed and gives
	// the reason.
	IndexFile func(ctx context.Context, path string, o IndexOptions) (Indexed, error)

	// Filter returns a value with the internal methods of f, a *filter.Filter, or nil for any
	// other f.
	Filter func(f any) any

	// BuildID returns a value with the internal methods of a *buildid.File, *buildid.SymbolPath,
	// *buildid.IDsFile or *buildid.Tree. For nil, the value's methods are internal functions of the
	// package.
	BuildID func(of any) any

	// Debuginfod returns a value with the internal methods of c, a *debuginfod.Client.
	Debuginfod func(c any) any

	// Valgrind and Rtrace return a value for the *Options of a report reader. The methods of the
	// value construct other readers. Both values have the method NewFindings. The value of Valgrind
	// also has NewPlaces, which returns a profile.Places.
	Valgrind, Rtrace func(o any) any

	// Contexts returns a container with a filter.Context for each key, within the limits l, a
	// filter.Limits. A key names one of the logs that a filter.Lines filters. The container has the
	// methods Of(key []byte) *filter.Context, AppendProcesses and Restore. It calls evicted, which
	// may be nil, as a Filter calls filter.Options.Evicted.
	Contexts func(l any, evicted func(key, reason string)) any
)

// IndexOptions configure IndexFile. Only Dir must be set.
type IndexOptions struct {
	Dir      string                 // directory of indexes, as symbolize.Options.IndexDir
	Budget   int64                  // bytes of all indexes in Dir; 0: 4 GiB
	Workers  int                    // goroutines that walk over one file; 0: 1
	Again    bool                   // replaces even a good index
	Progress func(units, total int) // gets the number of finished units, and of all; may be nil
}

// An Indexed describes an index that was made or found.
type Indexed struct {
	ID    string // build ID, in hex
	Size  int64  // bytes of the index
	Units int    // units of the file
	Found bool   // a good index existed, and none was made
}

// ErrNotIndexed reports that a file cannot have an index. For example, it has no build ID or no
// debug information.
var ErrNotIndexed = errors.New("not indexed")

// A CacheInfo is the state of debuginfod's cache, for display.
type CacheInfo struct {
	Dir         string
	Exists      bool
	Mode        fs.FileMode
	Files       int           // files that seem usable by name, type, owner and mode
	Misses      int           // empty files
	Temporary   int           // files being written, or left by a killed process
	Size        int64         // bytes of all files
	Clean       time.Duration // interval between two cleanings
	Unused      time.Duration // time without a read after which a file is removed
	Miss        time.Duration // time for which a miss is kept
	LastCleaned time.Time     // zero if never
	Problems    []string      // each with its remedy; at most 20
}

// A ProbeResult is the answer of a debuginfod server to one request.
type ProbeResult struct {
	Server    string
	Reachable bool          // the server sent an HTTP answer
	Works     bool          // a debuginfod server answered, with or without the file
	Has       bool          // the server has the file
	Took      time.Duration // time until the answer began
	Answer    string        // the answer as text, or the reason why there is none
}
