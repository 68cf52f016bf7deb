package llvmfilter

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// unknown is LLVM's text for an unknown name or file.
const unknown = "<invalid>"

func (f *Filter) symbol(e *element) {
	r := f.fields(e)
	if r.exactly(1); !r.ok {
		return
	}
	name := string(e.field(0).text)
	if f.o.Symbolizer != nil {
		if shown := f.o.Symbolizer.Demangle(name); shown != name {
			name, _, _ = strings.Cut(shown, "\x00") // in LLVM the name is a C string
		}
	}
	f.highlight()
	f.out = append(f.out, name...)
	f.restoreColor()
}

// A place is an address in a module's file.
type place struct {
	id   buildid.ID
	addr uint64
}

// locate returns the map that contains addr, and the place of addr in the module's file. If no map
// contains addr, locate reports an error at the first field of e, and prints e raw.
func (f *Filter) locate(e *element, addr uint64) (*mapping, place) {
	m := f.containing(addr)
	if m == nil {
		f.complain("no mmap covers address", e.field(0).at)
		f.raw(e)
		return nil, place{}
	}
	return m, place{m.module.build, addr - m.addr + m.rel}
}

func (f *Filter) pc(e *element) {
	r := f.fields(e)
	r.atLeast(1)
	r.atMost(2)
	addr := read(r, 0, "address", address)
	if e.fields == 2 { // with more fields, LLVM ignores the kind
		addr -= read(r, 1, "PC type", kind)
	}
	if !r.ok {
		return
	}
	m, at := f.locate(e, addr)
	if m == nil {
		return
	}
	frames, err := f.code(m.module, at)
	if err == errBroken || err == nil && len(frames) == 0 {
		f.raw(e)
		return
	}
	if err != nil {
		f.complainWithoutLine(err.Error())
		f.raw(e)
		return
	}
	// As in LLVM, the file and line are from the innermost inlined call. The name is, too, unless
	// it is from the symbol table: it then names the physical function.
	inner, outer := &frames[0], &frames[len(frames)-1]
	name := f.function(inner)
	if outer.FromSymbol {
		name = f.function(outer)
	}
	f.highlight()
	f.valueString(name)
	f.out = append(f.out, '[')
	f.file(inner, outer.SymbolFile)
	f.out = append(f.out, ':')
	f.number(uint64(inner.Line))
	f.out = append(f.out, ']')
	f.restoreColor()
}

func (f *Filter) bt(e *element) {
	r := f.fields(e)
	r.atLeast(2)
	r.atMost(3)
	n := read(r, 0, "frame number", frameNumber)
	addr := read(r, 1, "address", address)
	before := uint64(1) // default: a return address
	if e.fields == 3 {  // with more fields, LLVM ignores the kind
		before = read(r, 2, "PC type", kind)
	}
	if !r.ok {
		return
	}
	addr -= before
	m, at := f.locate(e, addr)
	if m == nil {
		return
	}
	frames, err := f.code(m.module, at)
	if err == errBroken {
		f.highlight()
		f.restoreColor()
		return
	}
	if err != nil {
		f.complainWithoutLine(err.Error())
		f.raw(e)
		return
	}
	f.highlight()
	if len(frames) == 0 {
		f.frame(n, 0, addr, nil, m, at)
	}
	for i := range frames {
		inline := i + 1
		if inline == len(frames) {
			inline = 0
		}
		f.frame(n, inline, addr, &frames[i], m, at)
		if inline != 0 {
			f.endLine()
		}
		if len(f.out) >= chunk {
			f.send()
		}
	}
	f.restoreColor()
}

// frame prints one frame. inline is the number of an inlined call, from 1 for the innermost, or
// 0 for the physical function.
func (f *Filter) frame(n uint64, inline int, addr uint64, fr *symbolize.Frame, m *mapping, at place) {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], n, 10)
	for range 5 - len(number) {
		f.out = append(f.out, ' ')
	}
	f.out = append(f.out, '#')
	f.value(number)
	if inline == 0 {
		f.out = append(f.out, "   "...)
	} else {
		f.out = append(f.out, '.')
		f.beginValue()
		f.out = strconv.AppendUint(f.out, uint64(inline), 10)
		if inline < 10 {
			f.out = append(f.out, ' ')
		}
		f.highlight()
	}
	f.beginValue()
	f.out = append(f.out, " 0x"...)
	hex := strconv.AppendUint(digits[:0], addr, 16)
	f.out = append(f.out, "0000000000000000"[len(hex):]...)
	f.out = append(f.out, hex...)
	f.out = append(f.out, ' ')
	f.highlight()
	if fr != nil {
		f.valueString(f.function(fr))
		f.out = append(f.out, ' ')
		f.file(fr, fr.SymbolFile)
		f.out = append(f.out, ':')
		f.number(uint64(fr.Line))
		f.out = append(f.out, ':')
		f.number(uint64(fr.Column))
		f.out = append(f.out, ' ')
	}
	f.out = append(f.out, '(')
	f.valueString(m.module.name)
	f.out = append(f.out, '+')
	f.hex(at.addr)
	f.out = append(f.out, ')')
}

func (f *Filter) data(e *element) {
	r := f.fields(e)
	r.exactly(1)
	addr := read(r, 0, "address", address)
	if !r.ok {
		return
	}
	m, at := f.locate(e, addr)
	if m == nil {
		return
	}
	name, err := f.variable(m.module, at)
	if err != nil && err != errBroken {
		f.complainWithoutLine(err.Error())
		f.raw(e)
		return
	}
	f.highlight()
	f.out = append(f.out, name...)
	f.restoreColor()
}

func (f *Filter) hex(v uint64) {
	f.beginValue()
	f.out = strconv.AppendUint(append(f.out, "0x"...), v, 16)
	f.highlight()
}

func (f *Filter) number(v uint64) {
	f.beginValue()
	f.out = strconv.AppendUint(f.out, v, 10)
	f.highlight()
}

func (f *Filter) function(fr *symbolize.Frame) string { return f.name(fr.Func, fr.Linkage) }

func (f *Filter) name(shown, linkage string) string {
	switch {
	case linkage == "":
		return unknown
	case f.o.NoDemangle:
		return linkage
	case strings.HasPrefix(linkage, "__Z") || strings.HasPrefix(linkage, "____Z"):
		return linkage // LLVM demangles such names in symbol elements only
	case shown != linkage:
		shown, _, _ = strings.Cut(shown, "\x00") // in LLVM the name is a C string
	}
	return shown
}

// file prints the path of a frame's source file. If debug information has none, it prints ofSymbol,
// the file that the symbol table names.
func (f *Filter) file(fr *symbolize.Frame, ofSymbol string) {
	path := fr.File
	switch {
	case path == "":
		path = cmp.Or(ofSymbol, unknown)
	case f.o.Paths == RelativePaths:
		path = path[fr.CompDir:]
	case f.o.Paths == Basenames:
		path = basename(path[fr.Dir:])
	}
	f.valueString(path)
}

// basename returns the last component of a file's name. An absolute name is unchanged.
func basename(name string) string {
	if absolute(name) {
		return name
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// absolute reports whether a path is absolute by the rules of Unix or Windows.
func absolute(p string) bool {
	switch {
	case strings.HasPrefix(p, "/"), strings.HasPrefix(p, `\\`) && len(p) > 2:
		return true
	}
	return len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\') && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}
