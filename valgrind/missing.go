package valgrind

import (
	"errors"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// Unresolved are frames of one object that got no name.
type Unresolved struct {
	ID     buildid.ID // of the object's file, if it is here and has one
	Path   string     // of it on this machine; empty: the report has no object for the addresses
	Frames int64
	Err    error // why; nil: no symbol covers the addresses
}

// Why a frame has no place in a file.
var (
	errNoFile    = errors.New("there is no such file here; --sysroot says where files of another machine are")
	errNoObject  = errors.New("the report has no object for the address")
	errNoPlace   = errors.New("it is not known where the object was loaded; --bias or --map says so")
	errOtherFile = errors.New("this is not the file that ran: its code does not fit the addresses in the report")
)

// missing counts frames that got no name, by the path of their object.
type missing map[string]*Unresolved

// placeless says why a frame has no place in a file, and of what object it is.
func (p *process) placeless(f *Frame) (*file, error) {
	if f.Obj == nil || f.RawIP != nil {
		return nil, errNoObject
	}
	o := p.known(f.Obj)
	switch {
	case o == nil:
		return nil, errNoObject
	case o.file.err != nil:
		return o.file, o.file.err
	case slices.ContainsFunc(o.epochs, func(e *epoch) bool { return e.stale }):
		return o.file, errOtherFile
	}
	return o.file, errNoPlace
}

// miss counts a site that gets no name; err is what the symbolizer said.
func (t *tracker) miss(s *site, err error) {
	if t.o.Elements { // another program answers
		return
	}
	var f *file
	if s.at != nil {
		f = s.at.of.file
	} else {
		f, err = t.cur.placeless(&s.frames[len(s.frames)-1])
	}
	u := Unresolved{Err: err}
	if f != nil {
		u.ID, u.Path = f.id, f.path
	}
	known := t.missing[u.Path]
	if known == nil && len(t.missing) >= maxOpen {
		u = Unresolved{Err: errNoObject}
		known = t.missing[""]
	}
	if known == nil {
		known = &u
		t.missing[u.Path] = known
	}
	known.Frames++
	known.Err = u.Err
}

// list returns what was counted, by path.
func (m missing) list() (all []Unresolved) {
	for _, path := range slices.Sorted(maps.Keys(m)) {
		all = append(all, *m[path])
	}
	return all
}
