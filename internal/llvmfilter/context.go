package llvmfilter

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
)

// A moduleLine is a line about a module that is printed up to its maps; those
// that follow immediately are added to it.
type moduleLine struct {
	module *module
	maps   []*mapping
}

// context follows the contextual element that makes the line at work a
// contextual one. What stands before it is printed if the element makes a line
// of the output begin, and else dropped; a bad element's line is lost.
func (f *Filter) context(e *element) {
	switch string(e.tag) {
	case "module":
		f.module(e)
	case "mmap":
		f.mmap(e)
	case "reset":
		f.reset(e)
	}
}

func (f *Filter) module(e *element) {
	if !f.atLeast(e, 3) {
		return
	}
	id, ok := f.integer("module ID", e.field(0))
	if !ok {
		return
	}
	if kind := e.field(2); string(kind.text) != "elf" {
		f.complain("unknown module type", kind.at)
		return
	}
	if !f.exactly(e, 4) {
		return
	}
	build, ok := f.buildID(e.field(3))
	if !ok {
		return
	}
	name := e.field(1).text
	switch {
	case f.defined(id):
		f.complain("duplicate module ID", e.field(0).at)
		return
	case len(f.modules) >= maxModules || f.size+len(name) > maxContext:
		f.complain("too many modules", e.field(0).at)
		return
	}
	m := &module{id: id, name: string(name)}
	if len(build) <= maxIDBytes {
		m.build, _ = buildid.FromBytes(build) // of 1 to 64 bytes
	}
	f.add(m)
	if f.o.Symbolizer != nil && !m.build.IsZero() {
		f.o.Symbolizer.Prefetch(m.build, m.name)
	}

	f.endModule()
	f.parts(f.line[:e.start])
	f.beginModule(m)
	f.out = append(f.out, "; BuildID="...)
	f.beginValue()
	f.out = hex.AppendEncode(f.out, build)
	f.highlight()
}

func (f *Filter) mmap(e *element) {
	m, ok := f.parseMap(e)
	if !ok {
		return
	}
	if old := f.overlapping(m); old != nil {
		f.complain("overlapping mmap: #0x"+strconv.FormatUint(old.module.id, 16)+
			" [0x"+strconv.FormatUint(old.addr, 16)+"-0x"+strconv.FormatUint(old.end(), 16)+"]", e.field(0).at)
		return
	}
	if f.maps.count >= maxMaps || f.open != nil && len(f.open.maps) >= maxMaps {
		f.complain("too many mmaps", e.field(0).at)
		return
	}
	m = f.maps.insert(m) // of two that begin at one address, of which the first is empty, the first stays
	if f.open == nil || f.open.module != m.module {
		f.endModule()
		f.parts(f.line[:e.start])
		f.beginModule(m.module)
		f.out = append(f.out, "; adds"...)
	}
	f.open.maps = append(f.open.maps, m)
}

// parseMap reads the fields of an mmap element.
func (f *Filter) parseMap(e *element) (m *mapping, ok bool) {
	if !f.atLeast(e, 3) {
		return nil, false
	}
	m = new(mapping)
	if m.addr, ok = f.address(e.field(0)); !ok {
		return nil, false
	}
	if m.size, ok = f.integer("size", e.field(1)); !ok {
		return nil, false
	}
	if kind := e.field(2); string(kind.text) != "load" {
		f.complain("unknown mmap type", kind.at)
		return nil, false
	}
	if !f.exactly(e, 6) {
		return nil, false
	}
	id, ok := f.integer("module ID", e.field(3))
	if !ok {
		return nil, false
	}
	if m.mode, ok = f.mode(e.field(4)); !ok {
		return nil, false
	}
	if m.module = f.modules[id]; m.module == nil {
		f.complain("unknown module ID", e.field(3).at)
		return nil, false
	}
	m.rel, ok = f.address(e.field(5))
	return m, ok
}

func (f *Filter) reset(e *element) {
	if !f.exactly(e, 0) || f.empty() {
		return
	}
	f.endModule()
	f.parts(f.line[:e.start])
	f.raw(e)
	f.endLine()
	f.forget()
}

// beginModule begins a line about a module.
func (f *Filter) beginModule(m *module) {
	f.highlight()
	f.out = append(f.out, "[[[ELF module"...)
	f.beginValue()
	f.out = append(f.out, " #0x"...)
	f.out = strconv.AppendUint(f.out, m.id, 16)
	f.out = append(f.out, ' ')
	f.highlight()
	f.out = append(f.out, '"')
	f.valueString(m.name)
	f.out = append(f.out, '"')
	f.open = &moduleLine{module: m}
}

// endModule ends the line about a module that is being printed, if there is
// one: with its maps by address, and with the line end of the line at work.
func (f *Filter) endModule() {
	if f.open == nil {
		return
	}
	maps := f.open.maps
	f.open = nil
	slices.SortStableFunc(maps, func(a, b *mapping) int { return cmp.Compare(a.addr, b.addr) })
	for _, m := range maps {
		separator := byte(',')
		if m == maps[0] { // one that repeats the first has a space, too
			separator = ' '
		}
		f.out = append(f.out, separator, '[')
		f.beginValue()
		f.out = append(f.out, "0x"...)
		f.out = strconv.AppendUint(f.out, m.addr, 16)
		f.highlight()
		f.out = append(f.out, '-')
		f.beginValue()
		f.out = append(f.out, "0x"...)
		f.out = strconv.AppendUint(f.out, m.end(), 16)
		f.highlight()
		f.out = append(f.out, "]("...)
		f.valueString(m.mode)
		f.out = append(f.out, ')')
		if len(f.out) >= chunk {
			f.send()
		}
	}
	f.out = append(f.out, "]]]"...)
	f.endLine()
	f.restoreColor()
}
