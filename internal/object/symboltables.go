package object

import (
	"debug/elf"
	"iter"
	"slices"
)

// symbolTables are the symbol tables of a file, and of its MiniDebugInfo. Each is read when it is
// first needed.
type symbolTables struct {
	sectionData
	symbols symbols  // .symtab, or .dynsym if that is missing or empty
	dynamic *symbols // .dynsym if symbols is .symtab, else empty; nil before secondary
	mini    mini
}

// primary returns the table that is searched first: .symtab, or .dynsym if that is missing or
// empty. An unreadable table counts as missing: lookups then find no name, but do not fail.
func (ts *symbolTables) primary() *symbols {
	t := &ts.symbols
	if !t.loaded {
		t.d = &ts.sectionData
		t.load(elf.SHT_SYMTAB)
		if len(t.raw) == 0 {
			t.load(elf.SHT_DYNSYM)
		}
	}
	return t
}

// secondary returns .dynsym if primary is .symtab, otherwise a table without symbols.
func (ts *symbolTables) secondary() *symbols {
	if ts.dynamic == nil {
		ts.dynamic = &symbols{rawSymbols: rawSymbols{d: &ts.sectionData, loaded: true}}
		if ts.primary().kind == elf.SHT_SYMTAB {
			ts.dynamic.load(elf.SHT_DYNSYM)
		}
	}
	return ts.dynamic
}

// covering returns the symbol with a size that covers addr, from the first table that has one.
// Otherwise it returns the nearest symbol without a size, from the first table that has it.
func (ts *symbolTables) covering(addr uint64) (best Symbol, found bool) {
	best, found = ts.primary().covering(addr)
	if found && best.Size != 0 {
		return best, true
	}
	more := func(sym Symbol, ok bool) {
		if ok && (!found || best.Size == 0 && sym.Size != 0 || (best.Size == 0) == (sym.Size == 0) && sym.Addr > best.Addr) {
			best, found = sym, true
		}
	}
	more(ts.secondary().covering(addr))
	if found && best.Size != 0 {
		return best, true
	}
	if m, _ := ts.Mini(); m != nil { // MiniDebugInfo that cannot be unpacked is ignored
		more(m.primary().covering(addr))
	}
	return best, found
}

// LoadSymbols loads the table that ReadySymbol uses. slow reports whether ReadySymbol will scan or
// sort a large table.
func (ts *symbolTables) LoadSymbols() (slow bool) {
	if ts.closed {
		return false
	}
	t := ts.primary()
	return t.sorted == nil && t.count() >= slowSymbols
}

// ReadySymbol returns the symbol with a size that covers addr, from the table that LoadSymbols has
// loaded. If no section is compressed, another goroutine may read sections meanwhile.
func (ts *symbolTables) ReadySymbol(addr uint64) (Symbol, bool) {
	t := &ts.symbols
	if ts.closed || !t.loaded {
		return Symbol{}, false
	}
	sym, found := t.covering(addr)
	return sym, found && sym.Size != 0
}

// SymbolReaching returns the symbol at addr as llvm-symbolizer does. A symbol without a size
// reaches to the next symbol, past the end of its section and beyond the last section.
// SymbolReaching searches only the first table.
func (ts *symbolTables) SymbolReaching(addr uint64) (Symbol, bool) {
	if ts.closed {
		return Symbol{}, false
	}
	sym, found := ts.primary().nearest(addr)
	if !found || len(sym.Name) == 0 || sym.Size != 0 && addr-sym.Addr >= sym.Size {
		return Symbol{}, false
	}
	return sym, true
}

// SourceFile returns the source file of a local symbol, as given to the compiler, usually without a
// directory: the name of the last STT_FILE symbol before sym. It returns nil for global symbols,
// and if there is no such name. sym must come from ts. The name aliases the file. The first call
// scans the table.
func (ts *symbolTables) SourceFile(sym Symbol) []byte {
	t := sym.table
	if !sym.Local || t == nil || sym.index >= t.count() {
		return nil
	}
	files := t.fileSymbols()
	i, _ := slices.BinarySearch(files, uint32(sym.index))
	if i == 0 {
		return nil
	}
	if name := t.name(t.d.u32(t.raw[uint64(files[i-1])*t.entry:])); len(name) > 0 {
		return name
	}
	return nil
}

// Symbols returns the symbols of the table that Symbol searches first: by address, one for each
// address. A name without an end in the file is nil. Other goroutines may use the File while the
// sequence is used; the File must stay open.
func (ts *symbolTables) Symbols() iter.Seq[Symbol] {
	t := symbols{}
	if !ts.closed {
		t = *ts.primary()
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

// AllSymbols returns every named symbol that can cover an address, first from .symtab, then from
// .dynsym, in the order of the tables. Several symbols may share an address; [File.Symbols] returns
// one for each address. Symbols and names alias the file, which must stay open.
func (ts *symbolTables) AllSymbols() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		if ts.closed {
			return
		}
		for _, t := range []*symbols{ts.primary(), ts.secondary()} {
			if !t.each(yield) {
				return
			}
		}
	}
}

// each calls yield for each named symbol that can cover an address. If yield returns false, each
// stops and returns false.
func (t *symbols) each(yield func(Symbol) bool) bool {
	for i := uint64(1); (i+1)*max(t.entry, 1) <= uint64(len(t.raw)); i++ {
		if !t.give(i, yield) {
			return false
		}
	}
	return true
}

// give calls yield for symbol i, if the symbol has a name and can cover an address, and returns the
// result of yield. For other symbols, it returns true.
func (t *symbols) give(i uint64, yield func(Symbol) bool) bool {
	sym, name, shndx := t.at(i)
	if !t.counts(&sym, name, shndx) {
		return true
	}
	sym.Name = t.name(name)
	return len(sym.Name) == 0 || yield(sym)
}

func (ts *symbolTables) footprint() int64 {
	n := ts.sectionData.footprint() + ts.symbols.footprint() + ts.dynamic.footprint()
	if ts.mini.file != nil {
		n += ts.mini.file.Footprint()
	}
	return n
}
