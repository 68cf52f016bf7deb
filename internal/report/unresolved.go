package report

import (
	"maps"
	"slices"

	"github.com/symfilter/symfilter/symbolize"
)

// maxMissing bounds the objects that a Missing counts separately.
const maxMissing = 4096

// Missing counts unresolved frames by the path of their object file. The zero value is empty.
type Missing struct {
	Named  int64 // frames named only by symbols, for Options.Named
	byName map[string]*symbolize.Unresolved
}

// Pass passes the counts to o.Named and o.Unresolved, at the end of a report.
func (m *Missing) Pass(o *Options) {
	if o.Named != nil {
		o.Named(m.Named)
	}
	if o.Unresolved != nil {
		o.Unresolved(m.List())
	}
}

// Add adds the frames of u to the count for u.Name. If maxMissing names have counts, Add adds the
// frames of a new name to a count without a name. A count has the ID and Err of the last u that was
// added to it.
func (m *Missing) Add(u symbolize.Unresolved) {
	if m.byName == nil {
		m.byName = make(map[string]*symbolize.Unresolved)
	}
	known := m.byName[u.Name]
	if known == nil && len(m.byName) >= maxMissing {
		u = symbolize.Unresolved{Frames: u.Frames, Err: u.Err}
		known = m.byName[""]
	}
	if known == nil {
		known = &symbolize.Unresolved{Name: u.Name}
		m.byName[u.Name] = known
	}
	known.Frames += u.Frames
	known.ID, known.Err = u.ID, u.Err
}

// Unresolved returns an entry for the given number of frames in f that have no name. The reason is
// f.Err or, if that is nil, err.
func (f *Object) Unresolved(frames int64, err error) symbolize.Unresolved {
	if f.Err != nil {
		err = f.Err
	}
	return symbolize.Unresolved{ID: f.ID, Name: f.Path, Frames: frames, Err: err}
}

// List returns the counts, sorted by name.
func (m *Missing) List() (all []symbolize.Unresolved) {
	for _, name := range slices.Sorted(maps.Keys(m.byName)) {
		all = append(all, *m.byName[name])
	}
	return all
}
