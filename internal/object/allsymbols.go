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
			if !t.each(yield) {
				return
			}
		}
	}
}

// each calls yield for the symbols until it returns false, and then returns false.
func (t *symbols) each(yield func(Symbol) bool) bool {
	for i := uint64(1); (i+1)*max(t.entry, 1) <= uint64(len(t.raw)); i++ {
		if !t.give(i, yield) {
			return false
		}
	}
	return true
}

// give calls yield for symbol i if it counts and has a name. It returns what yield does, or true.
func (t *symbols) give(i uint64, yield func(Symbol) bool) bool {
	sym, name, shndx := t.at(i)
	if !t.counts(&sym, name, shndx) {
		return true
	}
	sym.Name = t.name(name)
	return len(sym.Name) == 0 || yield(sym)
}
