package report

import (
	"maps"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// Unresolved are the frames of one object that got no name.
type Unresolved struct {
	ID     buildid.ID // of the object's file, if that is here and has one
	Path   string     // of the file on this machine; empty if the report has no object for the addresses
	Frames int64      // or functions, for a profile
	Err    error      // why; nil if no symbol covers the addresses
}

// maxMissing bounds the objects that Missing tells apart.
const maxMissing = 4096

// Missing counts frames that got no name, by the path of their object. The zero value is empty.
type Missing struct{ byPath map[string]*Unresolved }

// Add counts the frames of u. The last ID and Err given for a path are kept.
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

// Unresolved returns frames of f without a name. err is why they have none; a fault of f itself comes
// first.
func (f *Object) Unresolved(frames int64, err error) Unresolved {
	if f.Err != nil {
		err = f.Err
	}
	return Unresolved{ID: f.ID, Path: f.Path, Frames: frames, Err: err}
}

// List returns the counts, by path.
func (m *Missing) List() (all []Unresolved) {
	for _, path := range slices.Sorted(maps.Keys(m.byPath)) {
		all = append(all, *m.byPath[path])
	}
	return all
}
