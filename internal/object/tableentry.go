package object

import (
	"debug/elf"
	"iter"
)

// A TableEntry is an entry of a symbol table, of any type. Its name aliases the file.
type TableEntry struct {
	Name    []byte
	Addr    uint64 // without the Thumb bit
	Size    uint64 // bytes; 0: not known
	Type    elf.SymType
	Bind    elf.SymBind
	Hidden  bool // STV_HIDDEN
	Section int  // index of the symbol's section; 0 if it has none
	Index   uint64
}

// TableEntries returns the entries of the first symbol table of this kind that has symbols. They
// are in the order of the table, without the null entry. The File must stay open while the sequence
// and the names are used.
func (ts *symbolTables) TableEntries(kind elf.SectionType) iter.Seq[TableEntry] {
	return func(yield func(TableEntry) bool) {
		if ts.closed {
			return
		}
		t := symbols{rawSymbols: rawSymbols{d: &ts.sectionData}}
		t.load(kind)
		info, other := uint64(t.d.pick(12, 4)), uint64(t.d.pick(13, 5))
		for i := uint64(1); i < t.count(); i++ {
			sym, name, shndx := t.at(i)
			raw := t.raw[i*t.entry : (i+1)*t.entry]
			e := TableEntry{
				Name: t.name(name), Addr: sym.Addr, Size: sym.Size, Type: sym.Type, Index: i,
				Bind: elf.SymBind(raw[info] >> 4), Hidden: elf.SymVis(raw[other]&3) == elf.STV_HIDDEN,
				Section: t.sectionNumber(i, shndx),
			}
			if !yield(e) {
				return
			}
		}
	}
}

// sectionNumber returns the index of an entry's section; 0 for none.
func (t *rawSymbols) sectionNumber(index uint64, shndx uint16) int {
	n := uint64(shndx)
	switch i := elf.SectionIndex(shndx); {
	case i == elf.SHN_XINDEX && (index+1)*4 <= uint64(len(t.sections)):
		n = uint64(t.d.u32(t.sections[index*4:]))
	case i >= elf.SHN_LORESERVE:
		return 0
	}
	if n >= uint64(len(t.d.sections)) {
		return 0
	}
	return int(n)
}
