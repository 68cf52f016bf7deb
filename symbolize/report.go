package symbolize

import "github.com/symfilter/symfilter/buildid"

// A Report says how a module is answered, or why it is not.
type Report struct {
	Path     string            // the file in use; empty when there is none
	Where    string            // the finder that has it
	Holds    Holds             // what the file in use can answer from
	Attempts []buildid.Attempt // where the file was looked for, in order, and what was said there
	Fault    string            // what is wrong with the file in use or set aside; empty when nothing is
	Pending  bool              // it is being looked for
}

// Report returns what is known about a module. It looks for nothing; a module
// that nobody asked about has an empty one.
func (s *Symbolizer) Report(id buildid.ID, name string) Report {
	k := key{id: id}
	if id.IsZero() {
		k.name = name
	}
	s.mu.RLock()
	e := s.entries[k]
	s.mu.RUnlock()
	if e == nil {
		return Report{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := Report{Attempts: append([]buildid.Attempt(nil), e.attempts...), Fault: e.fault, Pending: e.finding}
	if m := e.module; m != nil {
		r.Path, r.Where, r.Holds = m.path, m.where, m.holds
		if m.fault != nil {
			r.Fault = m.path + ": " + m.fault.Error()
		}
	}
	return r
}
