package filter

import "github.com/symfilter/symfilter/markup"

// A Dump is a dump file that a dumpfile element announces, with the context for reading it. Its
// JSON has the form that Fuchsia's symbolizer uses.
type Dump struct {
	Modules  []DumpModule  `json:"modules"`
	Segments []DumpSegment `json:"segments"`
	Type     string        `json:"type"`
	Name     string        `json:"name"`
}

// A DumpModule is a module of the process that wrote the dump.
type DumpModule struct {
	Name  string `json:"name"`
	Build string `json:"build"` // build ID
	ID    uint64 `json:"id"`
}

// A DumpSegment is a map of a module.
type DumpSegment struct {
	Module uint64 `json:"mod"`
	Addr   uint64 `json:"vaddr"`
	Size   uint64 `json:"size"`
	Flags  string `json:"flags"`
	Rel    uint64 `json:"mod_rel_addr"`
}

// dump calls Options.DumpFile for a dumpfile element. Building the context takes longer than
// reading the element, so dump does nothing if DumpFile is nil or has returned false.
func (f *lineFilter) dump(e markup.DumpFile) {
	if f.o.DumpFile == nil || f.dumped {
		return
	}
	d := Dump{Modules: []DumpModule{}, Segments: []DumpSegment{}, Type: e.Type, Name: e.Name}
	s := &f.process.space
	for _, id := range s.ids() {
		m := s.modules[id]
		d.Modules = append(d.Modules, DumpModule{Name: m.name(), Build: m.buildID().String(), ID: id})
	}
	for _, run := range s.runs {
		for _, v := range run {
			d.Segments = append(d.Segments, DumpSegment{v.mod.id, v.start, v.end - v.start + 1, v.mode.String(), v.rel})
		}
	}
	f.dumped = !f.o.DumpFile(d)
}
