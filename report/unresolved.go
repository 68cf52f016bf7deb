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

// Add counts n frames of f, which is nil if the report has no object for them. err is why they have
// no name; the last one is kept.
func (m *Missing) Add(f *Object, n int64, err error) {
	u := Unresolved{Err: err}
	if f != nil {
		u.ID, u.Path = f.ID, f.Path
	}
	if m.byPath == nil {
		m.byPath = make(map[string]*Unresolved)
	}
	known := m.byPath[u.Path]
	if known == nil && len(m.byPath) >= maxMissing {
		u = Unresolved{Err: err}
		known = m.byPath[""]
	}
	if known == nil {
		known = &u
		m.byPath[u.Path] = known
	}
	known.Frames += n
	known.Err = u.Err
}

// List returns the counts, by path.
func (m *Missing) List() (all []Unresolved) {
	for _, path := range slices.Sorted(maps.Keys(m.byPath)) {
		all = append(all, *m.byPath[path])
	}
	return all
}
