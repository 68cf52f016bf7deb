package report

import (
	"maps"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// Unresolved counts the frames of one object that have no name.
type Unresolved struct {
	ID buildid.ID // of the object file; zero if the file is missing or has none
	// path of the file on this machine; empty if the report names no object for the addresses
	Path   string
	Frames int64 // frames, or functions of a profile
	Err    error // why they have no name; nil if no symbol covers the addresses
}

// maxMissing bounds the objects that a Missing counts separately.
const maxMissing = 4096

// Missing counts unresolved frames by the path of their object. The zero value is empty.
type Missing struct{ byPath map[string]*Unresolved }

// Add adds the frames of u to the count of u.Path. The last ID and Err given for a path are kept.
func (m *Missing) Add(u Unresolved) {
	if m.byPath == nil {
		m.byPath = make(map[string]*Unresolved)
	}
	known := m.byPath[u.Path]
	if known == nil && len(m.byPath) >= maxMissing {
		u = Unresolved{Frames: u.Frames, Err: u.Err}
		known = m.byPath[""]
	}
	if known == nil {
		known = &Unresolved{Path: u.Path}
		m.byPath[u.Path] = known
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
	return Unresolved{ID: f.ID, Path: f.Path, Frames: frames, Err: err}
}

// List returns the counts, sorted by path.
func (m *Missing) List() (all []Unresolved) {
	for _, path := range slices.Sorted(maps.Keys(m.byPath)) {
		all = append(all, *m.byPath[path])
	}
	return all
}
