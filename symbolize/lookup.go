package symbolize

import (
	"errors"
	"runtime/debug"
	"unsafe"
)

// code appends the frames at addr to dst. Debug information that is broken is
// noted in m.fault and passed over; the error is one that makes the whole file
// unusable.
//
// As with LLVM, the name of the physical frame is that of the symbol that
// covers the address, if one does: it has the suffixes, ".cold" and
// ".isra.0", that debug information has not. The names of inlined calls are
// from debug information. Where that says nothing, the table in which a Go
// program keeps its own functions and lines takes its place; LLVM does not
// read it.
func (s *Symbolizer) code(m *module, dst []Frame, addr uint64) ([]Frame, error) {
	start := len(dst)
	dst, err := s.debugFrames(m, dst, addr)
	if errors.Is(err, errFault) {
		return dst[:start], err
	}
	if len(dst) == start && !s.o.Reaching {
		if dst, err = s.goFrames(m, dst, addr); err != nil {
			return dst[:start], err
		}
	}
	if s.o.NoInlines && len(dst) > start+1 {
		physical, innermost := dst[len(dst)-1], dst[start]
		innermost.Func, innermost.Linkage, innermost.PlainFunc, innermost.Inlined = physical.Func, physical.Linkage, physical.PlainFunc, false
		dst[start], dst = innermost, dst[:start+1]
	}
	if s.o.Names != LinkageNames {
		return dst, nil
	}
	wantFile := s.o.Reaching && (len(dst) == start || dst[start].File == "" || dst[len(dst)-1].File == "")
	symbol, err := s.symbol(m, addr, wantFile)
	switch {
	case err == ErrNoSymbol:
		return dst, nil
	case err != nil:
		return dst[:start], err
	case len(dst) == start:
		symbol.Offset = addr - symbol.addr
		return append(dst, symbol.Frame), nil
	}
	dst[len(dst)-1].takeName(&symbol.Frame)
	return dst, nil
}

// takeName gives f the name of the symbol.
func (f *Frame) takeName(symbol *Frame) {
	f.Func, f.Linkage, f.PlainFunc, f.FromSymbol = symbol.Func, symbol.Linkage, symbol.PlainFunc, true
	f.SymbolFile = symbol.SymbolFile
}

// debugFrames appends what debug information says of addr, in copies. The
// error is errFault or one that is noted already.
func (s *Symbolizer) debugFrames(m *module, dst []Frame, addr uint64) (frames []Frame, err error) {
	if dst, ok := s.indexFrames(m, dst, addr); ok {
		return dst, nil
	}
	if m.dw == nil || m.packed {
		return dst, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			frames, err = dst, caught(r)
			m.complain(err)
		}
	}()
	m.scratch, err = m.dw.Lookup(m.scratch[:0], addr)
	if m.read += m.dw.Read(); m.read > pagesKept {
		m.obj.ReleasePages()
		m.read = 0
	}
	if err != nil {
		m.complain(err) // what was found nevertheless is good
	}
	frames = dst
	for _, f := range m.scratch {
		var n name
		switch {
		case s.o.Names == NoNames:
		case f.Ref != 0:
			n = m.known.find(&s.names, f.Ref, m.dw.Name)
		default:
			n = s.names.ofFile(f.Name)
		}
		frames = append(frames, Frame{
			Func:      n.shown,
			Linkage:   n.linkage,
			File:      f.File,
			CompDir:   f.CompDir,
			Dir:       f.Dir,
			Line:      f.Line,
			Column:    f.Column,
			Inlined:   f.Inlined,
			HasLine:   f.File != "",
			PlainFunc: n.plain,
			PlainFile: f.PlainFile,
		})
	}
	return frames, err
}

// symbol is what the symbol table says of an address.
type symbol struct {
	Frame
	addr, size uint64
}

// symbol returns the symbol that covers addr, in copies; with its source file
// if that is wanted and the symbol is a local one.
func (s *Symbolizer) symbol(m *module, addr uint64, withFile bool) (v symbol, err error) {
	if !withFile {
		if v, ok := s.indexSymbol(m, addr); ok {
			return v, nil
		}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = caught(r)
		}
	}()
	obj := m.symbolObject()
	lookup := obj.Symbol
	if s.o.Reaching {
		lookup = obj.SymbolReaching
	}
	sym, ok := lookup(addr)
	if !ok {
		return v, ErrNoSymbol
	}
	v.addr, v.size = sym.Addr, sym.Size
	n := m.symbols.find(&s.names, uint64(uintptr(unsafe.Pointer(&sym.Name[0]))), func(uint64) []byte { return sym.Name })
	v.Func, v.Linkage, v.PlainFunc, v.FromSymbol = n.shown, n.linkage, n.plain, true
	if withFile {
		v.SymbolFile = s.names.ofFile(obj.SourceFile(sym)).linkage
	}
	return v, nil
}

// complain notes what is wrong with the debug information. It is a strike when
// that made its reader panic.
func (m *module) complain(err error) {
	if m.fault == nil {
		m.fault = err
	}
	if errors.Is(err, errPanic) {
		m.struck = err
	}
}

// ofFile returns the name in a file's bytes.
func (n *names) ofFile(b []byte) name {
	if len(b) == 0 {
		return name{}
	}
	return n.get(unsafe.String(&b[0], len(b))) // get copies what it keeps
}
