package symbolize

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// A Report describes the file that answers for a module, or why there is none.
type Report struct {
	ID       buildid.ID
	Name     string            // the first name used for the module in a question
	Path     string            // the file in use; empty: none
	Where    string            // the finder that has the file
	Holds    Holds             // the best source of answers in the file in use
	Attempts []buildid.Attempt // the places searched, in order, with the results
	Fault    string            // fault of the file in use or set aside; empty if none
	Pending  bool              // a search, or the inflation of the file's sections, is running
	// the package named in the file in use, if that file has no debug information
	Package Package

	// The file in use loads the module-relative addresses in [Low,High). Both are 0 if it has no
	// loaded segments, as in an object file.
	Low, High uint64
}

// A Package is the package note from a distribution's build tools in a file.
type Package struct {
	Type, Name, Version, Architecture string // for example deb, hello, 2.10-3, amd64
}

// packageOf returns the package in the note of m's file; the zero Package without one.
func packageOf(m *module) (p Package, err error) {
	err = guard(func() error {
		if note, ok := m.obj.PackageNote(); ok {
			p = Package{Type: note.Type, Name: note.Name, Version: note.Version, Architecture: note.Architecture}
		}
		return nil
	})
	return p, err
}

func (m *module) loads() (low, high uint64) {
	for _, p := range m.obj.Segments() {
		if end := p.Addr + p.MemSize; p.Type == elf.PT_LOAD && end > p.Addr {
			if high == 0 || p.Addr < low {
				low = p.Addr
			}
			high = max(high, end)
		}
	}
	return low, high
}

// Report returns the state of a module. It starts no search. A module that neither a question nor
// Prefetch has named has an empty Report.
func (s *Symbolizer) Report(id buildid.ID, name string) Report {
	e := s.cache.existing(id, name)
	if e == nil {
		return Report{}
	}
	return e.report()
}

// Reports returns a Report for each module that a question or Prefetch has named, sorted by ID and
// name.
func (s *Symbolizer) Reports() []Report {
	var all []Report
	for _, e := range s.cache.all() {
		all = append(all, e.report())
	}
	slices.SortFunc(all, func(a, b Report) int {
		return cmp.Or(cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (e *entry) report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := Report{
		ID:       e.key.id,
		Name:     e.name(),
		Attempts: slices.Clone(e.attempts),
		Fault:    e.fault,
		Pending:  e.task != nil,
	}
	if m := e.module; m != nil {
		r.Path, r.Where, r.Holds = m.path, m.where, m.holds
		r.Low, r.High = m.loads()
		fault := m.fault
		if m.holds < DebugInfo {
			var err error
			r.Package, err = packageOf(m)
			fault = cmp.Or(fault, err)
		}
		if fault != nil {
			r.Fault = m.path + ": " + fault.Error()
		}
	}
	return r
}
