package rtrace

import (
	"context"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// Output says in which form a report is printed.
type Output uint8

// The forms.
const (
	Text Output = iota // the report's own
	JSON               // an object a record: report.schema.json
)

// Options say where the files of a report are, and what is left of it. The zero
// value leaves all as it is.
type Options struct {
	// Symbolizer answers the frames. It may be nil.
	Symbolizer *symbolize.Symbolizer

	// Elements is for NewMarkup: every frame in a file with a build ID becomes
	// an element, for another program to answer, and no other does. Without it,
	// and with a Symbolizer, a frame of which the report says more than that
	// does is text.
	Elements bool

	// Output is for NewReport.
	Output Output

	// Sysroot is the folder below which the files are that a report names, if
	// it is not the root. PrefixMap replaces the first prefix that matches of
	// such a name; that is then its place. It does the same for source files.
	Sysroot   string
	PrefixMap []PrefixMap

	// Basenames is for NewReport: source files without their folders.
	Basenames bool

	// Processing says what is left out, and in which order the rest comes.
	Processing Processing

	// Wait is how long a frame may wait for the debug file of its object,
	// counted from the object's first frame. Context ends all waiting; nil
	// never does.
	Wait    time.Duration
	Context context.Context

	// Diagnose is told, in one line each, of files whose frames stay as they
	// are, and of what did not fit the limits. Nil: nobody is.
	Diagnose func(string)
}

// PrefixMap replaces the prefix Old of a file's name by New.
type PrefixMap struct{ Old, New string }

func (o *Options) context() context.Context {
	if o.Context != nil {
		return o.Context
	}
	return context.Background()
}

// teller passes diagnostics on, each once.
type teller struct {
	to   func(string)
	told map[string]struct{}
}

func (t *teller) tell(s string) {
	if _, ok := t.told[s]; ok || t.to == nil || len(t.told) >= maxTold {
		return
	}
	if t.told == nil {
		t.told = make(map[string]struct{})
	}
	t.told[s] = struct{}{}
	t.to(s)
}
