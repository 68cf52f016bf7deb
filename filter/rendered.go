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
	tail string // all that stands behind the address of a backtrace line, without colour
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
		n += int64(96 + len(f.name) + len(f.file) + len(f.tail)) // line and col are parts of tail
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
	// All that is composed is one string, which the frames share.
	var room [512]byte
	text := room[:0]
	var placeRoom [96]byte
	place := appendPlace(append(placeRoom[:0], '('), m, rel)
	place = append(place, ')')
	type parts struct{ name, line, col, end int }
	var partsRoom [16]parts
	ends := slices.Grow(partsRoom[:0], len(frames))
	for i := range frames {
		s, t := &frames[i], &r.frames[i]
		t.name = clean(s.Func)
		var p parts
		switch {
		case t.name == "":
			t.name = "??"
			text = append(text, t.name...)
		case s.File == "" && s.Offset != 0:
			text = append(append(text, t.name...), "+0x"...)
			text = strconv.AppendUint(text, s.Offset, 16)
			t.name = ""
		default:
			text = append(text, t.name...)
		}
		p.name = len(text)
		text = append(text, ' ')
		if s.File != "" {
			t.file = clean(paths.shown(s.File))
			text = append(append(text, t.file...), ':')
			text = strconv.AppendUint(text, uint64(s.Line), 10)
			p.line = len(text)
			text = append(text, ':')
			text = strconv.AppendUint(text, uint64(s.Column), 10)
			p.col = len(text)
			text = append(text, ' ')
		}
		text = append(text, place...)
		p.end = len(text)
		ends = append(ends, p)
	}
	whole, start := string(text), 0
	for i, p := range ends {
		t := &r.frames[i]
		t.tail = whole[start:p.end]
		if t.name == "" {
			t.name = whole[start:p.name]
		}
		if t.file != "" {
			t.line = whole[p.name+1+len(t.file)+1 : p.line]
			t.col = whole[p.line+1 : p.col]
		}
		start = p.end
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
