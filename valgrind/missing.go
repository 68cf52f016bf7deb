package valgrind

import (
	"errors"
	"slices"

	"github.com/symfilter/symfilter/symbolize"
)

// Reasons why a frame cannot be located in a file.
var (
	errNoObject  = errors.New("the report names no object file for the address")
	errNoPlace   = errors.New("the load address of the object is not known; use --bias or --map")
	errOtherFile = errors.New("not the file that ran: the code does not fit the addresses in the report")
)

// whyUnplaced returns the reason why a frame is not located in its object's file. The file is nil
// if unknown.
func (p *process) whyUnplaced(f *Frame) (*file, error) {
	if f.Obj == nil || f.RawIP != nil {
		return nil, errNoObject
	}
	o := p.knownObject(f.Obj)
	switch {
	case o == nil:
		return nil, errNoObject
	case o.file.Err != nil:
		return o.file, o.file.Err
	case slices.ContainsFunc(o.epochs, func(e *epoch) bool { return e.stale }):
		return o.file, errOtherFile
	}
	return o.file, errNoPlace
}

// countUnresolved counts a site without a name. err is the symbolizer's error.
func (t *tracker) countUnresolved(s *site, err error) {
	if t.o.Elements { // another program resolves the frames
		return
	}
	var f *file
	if s.at != nil {
		f = s.at.of.file
	} else {
		f, err = t.cur.whyUnplaced(&s.frames[len(s.frames)-1])
	}
	if f == nil {
		t.missing.Add(symbolize.Unresolved{Frames: 1, Err: err})
		return
	}
	t.missing.Add(f.Unresolved(1, err))
}
