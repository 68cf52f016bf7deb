package symbolize

import (
	"context"

	"github.com/symfilter/symfilter/internal/object"
)

// maxNamed bounds the symbols that Named returns. LLVM has no bound; a kernel has about a hundred
// functions of one name.
const maxNamed = 1024

// An Extent is the range of addresses of a symbol.
type Extent struct {
	Addr uint64
	Size uint64 // bytes; 0: not known

	// Next is the address of the next symbol in the same section. Linux prints Next-Addr as the
	// size of a function. 0: not known, or Options.Reaching is set.
	Next uint64
}

// Named returns the ranges of the symbols with this linkage name in the file of l: at most 1,024,
// by address. It ignores l.Addr. With Options.Reaching, symbols at one address are found only by
// the name that Ask returns. Named waits for the file until ctx is done, and returns the errors of
// Ask.
func (s *Symbolizer) Named(ctx context.Context, l Location, name string) (all []Extent, err error) {
	q, err := s.acquire(ctx, l)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		obj := q.m.symbolObject()
		if s.o.Reaching {
			all = namedAsLLVM(obj, name)
			return nil
		}
		symbols := obj.SymbolsNamed(name)
		for i := range symbols[:min(len(symbols), maxNamed)] {
			sym := &symbols[i]
			e := Extent{Addr: sym.Addr, Size: sym.Size}
			if next, ok := obj.NextSymbol(sym, sym.Addr); ok {
				e.Next = next
			}
			all = append(all, e)
		}
		return nil
	})
	return all, q.end(err)
}

// namedAsLLVM returns the ranges that llvm-symbolizer finds for a name. It looks in one symbol
// table, and for each address only at the symbol that Ask would return.
func namedAsLLVM(obj *object.File, name string) (all []Extent) {
	if len(obj.SymbolsNamed(name)) == 0 {
		// return early: perf asks for the name "," after each address, and a scan of all symbols
		// would take long
		return nil
	}
	for sym := range obj.Symbols() {
		if string(sym.Name) == name && len(all) < maxNamed {
			all = append(all, Extent{Addr: sym.Addr, Size: sym.Size})
		}
	}
	return all
}
