package judge

import "github.com/symfilter/symfilter/internal/object"

// Candidate returns the path of a file that the operator could name for f's module. Nothing refutes
// this file, but f is not located in it, since nothing proves it. base is the usual load address of
// such a file, or 0 if only the proof of the file is missing. If there is no such file, path is
// empty.
func (f *Frame) Candidate() (path string, base uint64) {
	m := f.Place.Image
	if m == nil || m.File == nil || m.Given {
		return "", 0
	}
	switch f.Place.Err {
	case ErrUnproven, ErrYounger, ErrTitle:
		return m.Path, 0
	case ErrNoBias:
		s, covered := sighting{addr: f.Addr, call: f.Call}, false
		object.Guard(func() { covered = f.Usual != 0 && m.isCode(s.lookup()-f.Usual) })
		if covered {
			return m.Path, f.Usual + m.lowest()
		}
	}
	return "", 0
}
