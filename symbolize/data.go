package symbolize

import (
	"cmp"
	"errors"

	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
)

// data returns the symbol that covers addr, with the member at addr from debug information. Without
// a symbol, it returns the variable in debug information: linkers may omit the symbols of local
// variables. Any error except ErrNoSymbol makes the whole file unusable.
func (q *question) data(addr uint64) (Variable, error) {
	detailed := q.s.o.Reaching && q.s.o.Details
	sym, err := q.symbol(addr, detailed)
	switch {
	case err == ErrNoSymbol && detailed:
		v, err := q.declared(addr)
		return v, cmp.Or(err, ErrNoSymbol)
	case err == ErrNoSymbol:
		return q.debugVariable(addr, dwarf.Extent{})
	}
	if err != nil {
		return Variable{}, err
	}
	v := Variable{Name: sym.Func, Linkage: sym.Linkage, Offset: addr - sym.addr, Size: sym.size}
	if detailed {
		declared, err := q.declared(addr)
		if v.Declared = declared.Declared; v.Declared.Line == 0 {
			v.Declared = Declaration{File: sym.SymbolFile}
		}
		return v, err
	}
	switch {
	case v.Offset == 0 || q.s.o.Reaching:
		return v, nil
	case v.Offset >= v.Size:
		return Variable{}, ErrNoSymbol
	}
	known, err := q.debugVariable(addr, dwarf.Extent{Name: []byte(sym.Linkage), Addr: sym.addr, Size: sym.size})
	if err != nil && err != ErrNoSymbol {
		return Variable{}, err
	}
	v.Member = known.Member
	return v, nil
}

// declared returns a Variable of which only Declared is set: the declaration of the variable at
// addr. As in LLVM, declared ignores the symbol at addr. Its error makes the whole file unusable.
func (q *question) declared(addr uint64) (Variable, error) {
	v, err := q.debugVariable(addr, dwarf.Extent{})
	if err == ErrNoSymbol {
		err = nil
	}
	return Variable{Declared: v.Declared}, err
}

// debugVariable returns the variable at addr in debug information. If sym has a name, it returns
// only the variable of that symbol. It returns ErrNoSymbol or object.ErrFault; it passes other
// errors to complain.
func (q *question) debugVariable(addr uint64, sym dwarf.Extent) (v Variable, err error) {
	s, m := q.s, q.m
	if m.dw == nil || m.packed || s.o.Reaching && !s.o.Details {
		return v, ErrNoSymbol
	}
	found := false
	err = guard(func() error {
		known, ok, err := m.dw.Variable(addr, sym)
		if ok {
			n := s.names.ofFile(known.Name)
			v = Variable{Name: n.shown, Linkage: n.linkage, Offset: addr - known.Addr, Size: known.Size, Member: known.Member, Declared: Declaration(known.Declared)}
			found = true
		}
		return err
	})
	if err != nil {
		q.complain(err)
	}
	switch {
	case errors.Is(err, object.ErrFault):
		return Variable{}, err
	case !found || brokeReader(err):
		return Variable{}, ErrNoSymbol
	}
	return v, nil
}
