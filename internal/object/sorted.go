package object

import "iter"

// Symbols returns the symbols of the table that Symbol searches first: by address, one for each
// address. A name without an end in the file is nil. Other goroutines may use f while the sequence
// is used; f must stay open.
func (f *File) Symbols() iter.Seq[Symbol] {
	t := symbols{}
	if !f.closed {
		t = *f.primary()
	}
	return func(yield func(Symbol) bool) {
		if len(t.raw) == 0 {
			return
		}
		t.makeSorted()
		for _, e := range t.sorted {
			sym, _, _ := t.at(uint64(e.index))
			t.setName(&sym)
			if !yield(sym) {
				return
			}
		}
	}
}
