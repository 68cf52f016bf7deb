package report

import (
	"maps"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// Unresolved counts the frames of one object that have no name.
type Unresolved struct {
	ID buildid.ID // of the object file; zero if the file is missing or has none
	// path of the file on this machine, or the name of a log's module as logged; empty if the
	// report names no object for the addresses
	Name   string
	Frames int64 // frames, functions of a profile, or elements of a log
	Err    error // why they have no name; nil if no symbol covers the addresses

	// Candidate is a file on this machine that may be the one of a log's module, which the log does not
	// prove. Base is the address at which it was loaded then, 0 if the log shows that. Candidate is
	// empty if no such file is known.
	Candidate string
	Base      uint64
}

// maxMissing bounds the objects that a Missing counts separately.
const maxMissing = 4096

// Missing counts unresolved frames by the name of their object. The zero value is empty.
type Missing struct {
	Named  int64 // frames that got a name by symbols, for Options.Named
	byName map[string]*Unresolved
}

// Pass passes the counts to o's functions, at the end of a report.
func (m *Missing) Pass(o *Options) {
	if o.Named != nil {
		o.Named(m.Named)
	}
	if o.Unresolved != nil {
		o.Unresolved(m.List())
	}
}

// Add adds the frames of u to the count of u.Name. The last ID and Err given for a name are kept.
func (m *Missing) Add(u Unresolved) {
	if m.byName == nil {
		m.byName = make(map[string]*Unresolved)
	}
	known := m.byName[u.Name]
	if known == nil && len(m.byName) >= maxMissing {
		u = Unresolved{Frames: u.Frames, Err: u.Err}
		known = m.byName[""]
	}
	if known == nil {
		known = &Unresolved{Name: u.Name}
		m.byName[u.Name] = known
	}
	known.Frames += u.Frames
	known.ID, known.Err = u.ID, u.Err
}

// Unresolved returns the count for the given number of unresolved frames of f. err is the reason;
// f.Err takes precedence over it.
func (f *Object) Unresolved(frames int64, err error) Unresolved {
	if f.Err != nil {
		err = f.Err
	}
	return Unresolved{ID: f.ID, Name: f.Path, Frames: frames, Err: err}
}

// List returns the counts, sorted by name.
func (m *Missing) List() (all []Unresolved) {
	for _, name := range slices.Sorted(maps.Keys(m.byName)) {
		all = append(all, *m.byName[name])
	}
	return all
}
