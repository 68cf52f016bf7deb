package object

import "iter"

// Symbols yields the symbols of the table that Symbol asks first, by address, no two with the same one. A name that the file does not end is nil.
func (f *File) Symbols() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		if f.closed {
			return
		}
		t := f.primary()
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
