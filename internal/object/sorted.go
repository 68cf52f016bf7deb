package object

import "iter"

// Symbols returns the symbols of the table that Symbol asks first: by address, no two with the same one. A name that the file does not end is nil.
// The sequence may be used while others use f, which must stay open.
func (f *File) Symbols() iter.Seq[Symbol] {
	t := symbols{}
	if !f.closed {
		t = *f.primary()
	}
	return func(yield func(Symbol) bool) {
		if len(t.raw) == 0 {
			return
		}
		if t.sorted == nil {
			t.sort()
		}
		for _, e := range t.sorted {
			sym, _, _ := t.at(uint64(e.index))
			t.setName(&sym)
			if !yield(sym) {
				return
			}
		}
	}
}
