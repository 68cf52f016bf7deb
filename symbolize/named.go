package symbolize

import "context"

// maxNamed bounds the symbols that Named returns. LLVM has no bound; a kernel has about a hundred
// functions of one name.
const maxNamed = 1024

// An Extent is the range of addresses of a symbol.
type Extent struct {
	Addr uint64
	Size uint64 // bytes; 0: not known
}

// Named returns the ranges of the symbols with this linkage name in the file of l: at most 1,024,
// by address. It ignores l.Addr. Of several symbols at one address, only the name that Ask returns
// is known. It waits for the file until ctx is done, and returns the errors of Ask.
func (s *Symbolizer) Named(ctx context.Context, l Location, name string) (all []Extent, err error) {
	q, err := s.acquire(ctx, l)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		for sym := range q.m.symbolObject().Symbols() {
			if string(sym.Name) == name && len(all) < maxNamed {
				all = append(all, Extent{sym.Addr, sym.Size})
			}
		}
		return nil
	})
	return all, q.end(err)
}
