package filter

import (
	"slices"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// rendered is what an address came to, in the pieces that the layouts need.
// It never changes, and it is shared by the Filters of a Cache.
type rendered struct {
	frames   []frameText         // of a code address, innermost first
	source   []symbolize.Frame   // of these, for JSON; else nil
	variable *symbolize.Variable // of a data address, for JSON; else nil
	data     string              // of a data address: name, name+0x18
	until    int64               // Unix nanoseconds, when a better debug file may be there; 0: never
	back     bool                // of a form that leaves the choice: one byte before the logged address was looked up
}

// frameText is one frame, all of it clean.
type frameText struct {
	name string // of the function, with +0x12 where only its symbol is known; "??" where nothing is
	file string // empty where there is no line
	line string // decimal
	col  string // decimal
	tail []byte // all that stands behind the address of a backtrace line, without colour
}

func (r *rendered) size() int64 {
	n := int64(96 + len(r.data))
	for i := range r.source {
		s := &r.source[i]
		n += int64(96 + len(s.Func) + len(s.Linkage) + len(s.File))
	}
	if v := r.variable; v != nil {
		n += int64(96 + len(v.Name) + len(v.Linkage) + len(v.Member))
	}
	for i := range r.frames {
		f := &r.frames[i]
		n += int64(96 + len(f.name) + len(f.file) + len(f.line) + len(f.col) + len(f.tail))
	}
	return n
}

func renderFrames(frames []symbolize.Frame, m *module, rel uint64, back bool, o *Options) *rendered {
	paths := &o.Paths
	r := &rendered{frames: make([]frameText, len(frames)), back: back, until: until(frames[0].Until)}
	if o.Output == JSON {
		r.source = slices.Clone(frames)
		for i := range r.source {
			if s := &r.source[i]; s.File != "" {
				s.File = paths.shown(s.File)
			}
		}
	}
	where := string(appendPlace(nil, m, rel))
	for i := range frames {
		s, t := &frames[i], &r.frames[i]
		t.name = clean(s.Func)
		if s.File != "" {
			t.file = clean(paths.shown(s.File))
			t.line = strconv.FormatUint(uint64(s.Line), 10)
			t.col = strconv.FormatUint(uint64(s.Column), 10)
		} else if s.Offset != 0 && t.name != "" {
			t.name += "+0x" + strconv.FormatUint(s.Offset, 16)
		}
		if t.name == "" {
			t.name = "??"
		}
		t.tail = append(t.tail, t.name...)
		t.tail = append(t.tail, ' ')
		if t.file != "" {
			t.tail = append(t.tail, t.file+":"+t.line+":"+t.col+" "...)
		}
		t.tail = append(append(append(t.tail, '('), where...), ')')
	}
	return r
}

func renderVariable(v symbolize.Variable, o *Options) *rendered {
	name := v.Name
	if v.Member != "" {
		name += v.Member
	} else if v.Offset != 0 {
		name += "+0x" + strconv.FormatUint(v.Offset, 16)
	}
	r := &rendered{data: clean(name), until: until(v.Until)}
	if o.Output == JSON {
		r.variable = &v
	}
	return r
}

func until(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// label is how a module is named in frames; one without a name by its build
// ID.
func (m *module) label() string {
	if m.name == "" {
		return m.buildID.String()
	}
	return clean(m.name)
}

// appendPlace appends module+0xrel.
func appendPlace(dst []byte, m *module, rel uint64) []byte {
	dst = append(dst, m.label()...)
	dst = append(dst, "+0x"...)
	return strconv.AppendUint(dst, rel, 16)
}
