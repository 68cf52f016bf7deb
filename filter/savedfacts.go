package filter

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/dialect"
)

// savedFacts is the form of Facts in a checkpoint. In nearly all logs, paths and names are UTF-8,
// which a checkpoint.Text stores as strings.
type savedFacts struct {
	Maps    checkpoint.List[savedMapping]    `json:"maps,omitempty"`
	Modules checkpoint.List[savedModuleFact] `json:"modules,omitempty"`
	Hash    string                           `json:"sha256,omitempty"`   // dialect.Program.Hash
	ID      string                           `json:"build_id,omitempty"` // dialect.Program.ID
	Version checkpoint.Text                  `json:"version,omitempty"`  // dialect.Program.Version
	// number of the process whose maps are in Maps
	Process uint64 `json:"process,omitempty"`
	// Maps are from an earlier trace
	Old bool `json:"old,omitempty"`
}

type savedMapping struct {
	Start   uint64          `json:"start"`
	End     uint64          `json:"end"`
	Offset  uint64          `json:"offset,omitempty"`
	Path    checkpoint.Text `json:"path"`
	Code    bool            `json:"code,omitempty"`
	Deleted bool            `json:"deleted,omitempty"`
	First   bool            `json:"first,omitempty"` // see dialect.Map.FirstCode
}

type savedModuleFact struct {
	Name    checkpoint.Text `json:"name,omitempty"`
	BuildID string          `json:"build_id,omitempty"`
	Prefix  string          `json:"build_id_prefix,omitempty"`
	Base    uint64          `json:"base,omitempty"`
	HasBase bool            `json:"has_base,omitempty"`
	End     uint64          `json:"end,omitempty"`
	Main    bool            `json:"main,omitempty"`
	Text    uint64          `json:"text,omitempty"`
}

// factsSaved returns the JSON form of facts, or nil if there are none.
func factsSaved(f *dialect.Facts) *savedFacts {
	if f.Empty() {
		return nil
	}
	p := f.Program()
	s := &savedFacts{Hash: p.Hash, ID: p.ID, Version: checkpoint.Text(p.Version)}
	s.Process, s.Old = f.MapsOf()
	for _, m := range f.Maps() {
		s.Maps = append(s.Maps, savedMapping{m.Start, m.End, m.Offset, checkpoint.Text(m.Path), m.Code, m.Deleted, m.FirstCode})
	}
	for _, m := range f.Modules() {
		s.Modules = append(s.Modules, savedModuleFact{checkpoint.Text(m.Name), m.ID.String(), m.Prefix.String(), m.Base, m.HasBase, m.End, m.Main, m.Text})
	}
	return s
}

// facts converts s, which may be nil, to Facts. Maps and modules beyond the limits of Facts are
// dropped. It fails if s is damaged.
func (s *savedFacts) facts() (f dialect.Facts, err error) {
	if s == nil {
		return f, nil
	}
	for _, m := range s.Maps {
		if m.Start >= m.End {
			return f, checkpoint.Damaged("the mapping [%#x-%#x] is empty", m.Start, m.End)
		}
		f.AddMap(dialect.Map{Start: m.Start, End: m.End, Offset: m.Offset, Path: string(m.Path), Code: m.Code, Deleted: m.Deleted, FirstCode: m.First})
	}
	f.SetMapsOf(s.Process, s.Old)
	for _, m := range s.Modules {
		id, err := savedID(m.BuildID)
		if err != nil {
			return f, err
		}
		prefix, err := savedID(m.Prefix)
		if err != nil {
			return f, err
		}
		f.AddModule(dialect.ModuleFact{Name: string(m.Name), ID: id, Prefix: prefix, Base: m.Base, HasBase: m.HasBase, End: m.End, Main: m.Main, Text: m.Text})
	}
	f.SetProgram(dialect.Program{Hash: s.Hash, ID: s.ID, Version: string(s.Version)})
	return f, nil
}

func savedID(digits string) (id buildid.ID, err error) {
	if digits == "" {
		return id, nil
	}
	if id, err = buildid.Parse([]byte(digits)); err != nil {
		return id, checkpoint.Damaged("a build ID: %v", err)
	}
	return id, nil
}
