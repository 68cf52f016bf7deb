package symbolize

import (
	"errors"
	"unsafe"

	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
)

// code appends the frames at addr to dst. It notes broken debug information in m.fault and skips
// it; an error makes the whole file unusable.
//
// As in LLVM, the symbol that covers the address, if any, names the physical frame: debug
// information lacks suffixes such as ".cold" and ".isra.0". Inlined calls get their names from
// debug information. If debug information does not cover addr, the function table of a Go program
// is used, except with Options.Reaching: LLVM does not read that table.
func (q *question) code(dst []Frame, addr uint64) ([]Frame, error) {
	o, start := &q.s.o, len(dst)
	addr = q.m.obj.Place(addr)
	dst, err := q.debugFrames(dst, addr)
	if errors.Is(err, object.ErrFault) {
		return dst[:start], err
	}
	if len(dst) == start && !o.Reaching {
		if dst, err = q.goFrames(dst, addr); err != nil {
			return dst[:start], err
		}
	}
	if o.NoInlines && len(dst) > start+1 {
		dst[start] = dst[len(dst)-1]
		dst = dst[:start+1]
	}
	if o.Names != LinkageNames && o.Names != ValgrindNames {
		return dst, nil
	}
	wantFile := o.Reaching && (len(dst) == start || dst[start].File == "" || dst[len(dst)-1].File == "")
	symbol, err := q.symbol(addr, wantFile)
	switch {
	case err == ErrNoSymbol:
		return dst, nil
	case err != nil:
		return dst[:start], err
	case len(dst) == start:
		symbol.Offset = addr - symbol.addr
		if o.Details {
			symbol.Details = &Details{Start: symbol.addr, HasStart: true}
		}
		return append(dst, symbol.Frame), nil
	}
	outer := &dst[len(dst)-1]
	outer.takeName(&symbol.Frame)
	if outer.Details != nil {
		outer.Details.Start, outer.Details.HasStart = symbol.addr, true
	}
	return dst, nil
}

func (f *Frame) takeName(symbol *Frame) {
	f.Func, f.Linkage, f.PlainFunc, f.FromSymbol = symbol.Func, symbol.Linkage, symbol.PlainFunc, true
	f.SymbolFile = symbol.SymbolFile
}

// debugFrames appends copies of the frames at addr in debug information. It passes its errors to
// complain before it returns them. Only object.ErrFault makes the file unusable.
func (q *question) debugFrames(dst []Frame, addr uint64) (frames []Frame, err error) {
	s, m := q.s, q.m
	if dst, ok := q.indexFrames(dst, addr); ok {
		return dst, nil
	}
	if m.dw == nil || m.packed {
		return dst, nil
	}
	frames = dst
	wanted := &s.names
	if s.o.Names != LinkageNames || s.o.Reaching {
		wanted = nil
	}
	err = guard(func() error {
		m.early.begin(m, wanted, addr)
		var room [usualFrames]dwarf.Frame
		found, err := m.dw.Lookup(room[:0], addr)
		m.touched(m.dw.Read())
		all := &s.names
		if s.o.Names == NoNames {
			all = nil
		}
		frames = appendFrames(frames, found, all, &m.known, m.dw)
		return err // the frames found before the error are good
	})
	m.early.end()
	if err != nil {
		q.complain(err)
	}
	if brokeReader(err) {
		return dst, err
	}
	return frames, err
}

// appendFrames appends copies of frames found by d. If all is nil, the copies have no names.
func appendFrames(dst []Frame, found []dwarf.Frame, all *names, known *knownNames, d *dwarf.Data) []Frame {
	for i := range found {
		f := &found[i]
		n := &noName
		switch {
		case all == nil:
		case f.Ref != 0:
			n = known.find(all, f.Ref, d.Name)
		default:
			n = all.ofFile(f.Name)
		}
		dst = append(dst, Frame{
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
			Details:   detailsOf(f.Details),
		})
	}
	return dst
}

func detailsOf(v *dwarf.Details) *Details {
	if v == nil {
		return nil
	}
	return &Details{v.Discriminator, Declaration(v.Declared), v.Start, v.HasStart, v.First, v.Entry, v.Linker, v.Split, v.Within}
}

// usualFrames is the maximum number of frames that a lookup returns without an allocation.
const usualFrames = 8

// A symbol holds the frame that the symbol table gives for an address, and the symbol's range.
type symbol struct {
	Frame
	addr, size uint64
}

// symbol returns a copy of the symbol that covers addr. withFile adds the source file of a local
// symbol.
func (q *question) symbol(addr uint64, withFile bool) (v symbol, err error) {
	if !withFile {
		if v, ok := q.indexSymbol(addr); ok {
			return v, nil
		}
	}
	s, m := q.s, q.m
	if y := &m.early; y.found != nil && y.addr == addr && !withFile && !s.o.Reaching {
		v := *y.found
		y.found = nil
		return v, nil
	}
	err = guard(func() error {
		obj := m.symbolObject()
		lookup := obj.Symbol
		if s.o.Reaching {
			lookup = obj.SymbolReaching
		}
		sym, ok := lookup(addr)
		if !ok {
			return ErrNoSymbol
		}
		v = named(&m.symbols, &s.names, sym)
		if withFile {
			v.SymbolFile = s.names.ofFile(obj.SourceFile(sym)).linkage
		}
		return nil
	})
	if err != nil {
		return symbol{}, err
	}
	return v, nil
}

// named returns sym with its name, for which it looks in known first. known caches the names of one
// module's symbols.
func named(known *knownNames, all *names, sym object.Symbol) (v symbol) {
	v.addr, v.size = sym.Addr, sym.Size
	// The name's address in memory is its key in known, so a known name need not be read again. The
	// address can be reused only after the file, or the symbol table inflated from it, is released,
	// and both live as long as known. borrow replaces the symbol object only before the first
	// lookup in m.
	place := uint64(uintptr(unsafe.Pointer(&sym.Name[0])))
	n := known.find(all, place, func(uint64) []byte { return sym.Name })
	v.Func, v.Linkage, v.PlainFunc, v.FromSymbol = n.shown, n.linkage, n.plain, true
	return v
}

// noName is the name of a function without a name. It must not be changed.
var noName name

// ofFile returns the name with the bytes b, which may be in a mapped file.
func (n *names) ofFile(b []byte) *name {
	if len(b) == 0 {
		return &noName
	}
	return n.get(unsafe.String(&b[0], len(b))) // get makes copies of the names that it keeps
}
