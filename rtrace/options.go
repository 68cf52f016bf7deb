package rtrace

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
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

	// NoPaths opens no file because the report names it: what has no name in the
	// report stays without.
	NoPaths bool

	// Basenames is for NewReport: source files without their folders.
	Basenames bool

	// Processing says what is left out, and in which order the rest comes.
	Processing Processing

	// Wait is how long a frame may wait for the debug file of its object,
	// counted from the object's first frame. Context ends all waiting; nil
	// never does.
	Wait    time.Duration
	Context context.Context

	// Unresolved is told at the end which frames got no name, by what was mapped
	// there; those that became elements are not among them. Nil: nobody is.
	Unresolved func([]Unresolved)

	// Diagnose is told, in one line each, of files whose frames stay as they
	// are, and of what did not fit the limits. Nil: nobody is.
	Diagnose func(string)
}

// Unresolved are frames of one mapped file that got no name.
type Unresolved struct {
	ID     buildid.ID // of the file, if it is here and has one
	Path   string     // of it on this machine, or what the report calls it; empty: nothing was mapped there
	Frames int64
	Err    error // why; nil: no symbol covers the addresses
}

// PrefixMap replaces the prefix Old of a file's name by New.
type PrefixMap = buildid.PrefixMap

// missing counts frames that got no name.
type missing map[string]*Unresolved

// add counts a frame.
func (m missing) add(s site, err error) {
	u := Unresolved{}
	if s.at != nil {
		u.Path, u.Err = s.at.path, err
		if f := s.at.file; f == nil {
			u.Err = errNoFile
		} else {
			u.ID, u.Path = f.id, f.path
			switch {
			case f.err != nil:
				u.Err = f.err
			case !s.at.placed:
				u.Err = errOtherFile
			}
		}
	}
	known := m[u.Path]
	if known == nil {
		if len(m) >= maxFiles {
			u = Unresolved{}
		}
		if known = m[u.Path]; known == nil {
			known = &u
			m[u.Path] = known
		}
	}
	known.Frames++
	known.Err = u.Err
}

// list returns what was counted, by path.
func (m missing) list() (all []Unresolved) {
	for _, path := range slices.Sorted(maps.Keys(m)) {
		all = append(all, *m[path])
	}
	return all
}

var (
	errNoFile    = errors.New("what is mapped there is no file")
	errOtherFile = errors.New("the file is not the one that ran: another part of it was mapped as code")
)

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
