package symbolize

import (
	"errors"
	"runtime/debug"

	"github.com/symfilter/symfilter/internal/dwarf"
)

// data returns the symbol at addr if addr is within its size, with the member
// that debug information says is there. Where no symbol is, debug information
// may know a variable: linkers can leave the names of local ones out. The error
// is ErrNoSymbol or one that makes the whole file unusable.
func (s *Symbolizer) data(m *module, addr uint64) (Variable, error) {
	sym, err := s.symbol(m, addr, false)
	if err == ErrNoSymbol {
		return s.debugVariable(m, addr, dwarf.Extent{})
	}
	if err != nil {
		return Variable{}, err
	}
	v := Variable{Name: sym.Func, Linkage: sym.Linkage, Offset: addr - sym.addr, Size: sym.size}
	switch {
	case v.Offset == 0 || s.o.Reaching:
		return v, nil
	case v.Offset >= v.Size:
		return Variable{}, ErrNoSymbol
	}
	known, err := s.debugVariable(m, addr, dwarf.Extent{Name: []byte(sym.Linkage), Addr: sym.addr, Size: sym.size})
	if err != nil && err != ErrNoSymbol {
		return Variable{}, err
	}
	v.Member = known.Member
	return v, nil
}

// debugVariable returns what debug information says of the variable at addr,
// which is sym if that has a name. The error is ErrNoSymbol or errFault; others
// are noted.
func (s *Symbolizer) debugVariable(m *module, addr uint64, sym dwarf.Extent) (v Variable, err error) {
	if m.dw == nil || m.packed || s.o.Reaching {
		return v, ErrNoSymbol
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			v, err = Variable{}, caught(r)
			m.complain(err)
			if !errors.Is(err, errFault) {
				err = ErrNoSymbol
			}
		}
	}()
	known, ok, err := m.dw.Variable(addr, sym)
	if err != nil {
		m.complain(err)
	}
	if !ok {
		return v, ErrNoSymbol
	}
	n := s.names.ofFile(known.Name)
	return Variable{Name: n.shown, Linkage: n.linkage, Offset: addr - known.Addr, Size: known.Size, Member: known.Member}, nil
}
