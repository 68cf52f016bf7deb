package object

import "iter"

// AllSymbols returns every named symbol that an address can be in, of .symtab and then .dynsym, in
// the order of the tables: all of several at one address. Symbols and names alias the file, which
// must stay open. See [File.Symbols] for one symbol an address.
func (f *File) AllSymbols() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		if f.closed {
			return
		}
		for _, t := range []*symbols{f.primary(), f.secondary()} {
			for i := uint64(1); (i+1)*max(t.entry, 1) <= uint64(len(t.raw)); i++ {
				sym, name, shndx := t.at(i)
				if !t.counts(&sym, name, shndx) {
					continue
				}
				if sym.Name = t.name(name); len(sym.Name) > 0 && !yield(sym) {
					return
				}
			}
		}
	}
}
