package llvmfilter

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
)

// A moduleLine is the line that is printed for a module element, before its maps are printed. It
// collects the maps that follow immediately.
type moduleLine struct {
	module *module
	maps   []*mapping
}

// context processes the contextual element of the current line. The text before the element is
// printed if the element begins a line of the output, and otherwise dropped. The line of a
// malformed element is dropped.
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
	r := f.fields(e)
	r.atLeast(3)
	id := read(r, 0, "module ID", integer)
	r.literal(2, "elf", "unknown module type")
	r.exactly(4)
	build := read(r, 3, "build ID", buildID)
	if !r.ok {
		return
	}
	name := e.field(1).text
	r.require(!f.defined(id), 0, "duplicate module ID")
	r.require(len(f.modules) < maxModules && f.size+len(name) <= maxContext, 0, "too many modules")
	if !r.ok {
		return
	}
	m := &module{id: id, name: string(name)}
	if len(build) <= maxIDBytes {
		m.build, _ = buildid.FromBytes(build) // fails unless it has 1 to 64 bytes
	}
	f.addModule(m)
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
	m = f.maps.insert(m) // as in LLVM, an empty map at the same address takes precedence
	if f.open == nil || f.open.module != m.module {
		f.endModule()
		f.parts(f.line[:e.start])
		f.beginModule(m.module)
		f.out = append(f.out, "; adds"...)
	}
	f.open.maps = append(f.open.maps, m)
}

// parseMap parses the fields of an mmap element.
func (f *Filter) parseMap(e *element) (m *mapping, ok bool) {
	r := f.fields(e)
	r.atLeast(3)
	m = &mapping{addr: read(r, 0, "address", address), size: read(r, 1, "size", integer)}
	r.literal(2, "load", "unknown mmap type")
	r.exactly(6)
	id := read(r, 3, "module ID", integer)
	m.mode = read(r, 4, "mode", mode)
	m.module = f.modules[id]
	r.require(m.module != nil, 3, "unknown module ID")
	m.rel = read(r, 5, "address", address)
	return m, r.ok
}

func (f *Filter) reset(e *element) {
	r := f.fields(e)
	if r.exactly(0); !r.ok || f.empty() {
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

// endModule ends the open module line, if any. It prints the line's maps by address, and then
// the line end of the current line.
func (f *Filter) endModule() {
	if f.open == nil {
		return
	}
	maps := f.open.maps
	f.open = nil
	slices.SortStableFunc(maps, func(a, b *mapping) int { return cmp.Compare(a.addr, b.addr) })
	for _, m := range maps {
		separator := byte(',')
		if m == maps[0] { // a repeated first map follows a space, too
			separator = ' '
		}
		f.out = append(f.out, separator, '[')
		f.hex(m.addr)
		f.out = append(f.out, '-')
		f.hex(m.end())
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
