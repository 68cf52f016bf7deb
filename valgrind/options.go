package valgrind

import (
	"context"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Options say where the files of a report are, and what is known of where they
// were loaded.
type Options struct {
	// Symbolizer answers the frames, and says what code may be at an address
	// where the place of an object is looked for. It may be nil.
	Symbolizer *symbolize.Symbolizer

	// Elements is for NewMarkup: every frame whose place in a file with a build
	// ID is known becomes an element, for another program to answer. Without it,
	// and with a Symbolizer, a frame of which the report says more than that
	// does is text.
	Elements bool

	// Sysroot is the folder below which the files are that a report names, if
	// it is not the root. PrefixMap replaces the first prefix that matches of
	// such a name; that is then its place. It does the same for source files,
	// and Basenames takes their folders away, where they do not become elements.
	Sysroot   string
	PrefixMap []PrefixMap
	Basenames bool

	// NoPaths opens no file because the report names it: what has no name in the
	// report stays without.
	NoPaths bool

	// Maps says exactly where files were loaded. Without it, or for files that
	// are not in it, the bias is inferred.
	Maps []Map

	// Ahead is what was learnt of the whole report before, if it is a file.
	// Without it, what a frame is told of its file's place is what came
	// before it.
	Ahead *Ahead

	// Wait is how long a frame may wait for the debug file of its object,
	// counted from the object's first frame. Context ends all waiting; nil
	// never does.
	Wait    time.Duration
	Context context.Context

	// Unresolved is told at the end which frames got no name, by their object;
	// those that became elements are not among them. Nil: nobody is.
	Unresolved func([]Unresolved)

	// Diagnose is told, in one line each, of objects whose place is not known,
	// and of files that are of another build than the one that ran. Nil: nobody
	// is.
	Diagnose func(string)
}

// PrefixMap replaces the prefix Old of a file's name by New.
type PrefixMap = buildid.PrefixMap

func (o *Options) diagnose(s string) {
	if o.Diagnose != nil {
		o.Diagnose(s)
	}
}

// source returns the name of a source file to be shown.
func (o *Options) source(name string) string {
	if o.Basenames {
		return base(name)
	}
	name, _ = buildid.PrefixMaps(o.PrefixMap).Replace(name)
	return name
}

func (o *Options) context() context.Context {
	if o.Context != nil {
		return o.Context
	}
	return context.Background()
}
