package object

import (
	"sync"
	"sync/atomic"
)

// A SymbolTable is the table that File.Symbol searches first. Many goroutines may use it, until the
// File is closed. If no section of the File is compressed, another goroutine may use the File
// meanwhile.
type SymbolTable struct {
	t       symbols      // does not change
	lookups atomic.Int64 // number of lookups that scanned the table
	sorting sync.Once
	sorted  atomic.Pointer[symbols] // t with its sorted table; nil until the sorted table is built
}

// SymbolTable returns the table that Symbol searches first. The SymbolTable and the File share a
// sorted table, which is built once.
func (ts *symbolTables) SymbolTable() *SymbolTable {
	if ts.closed {
		return new(SymbolTable)
	}
	t := ts.primary()
	if t.shared == nil {
		s := &SymbolTable{t: *t}
		if t.sorted != nil {
			s.sorted.Store(&s.t)
		}
		t.shared = s
	}
	return t.shared
}

// Symbol returns the symbol of this table with a size that covers addr. If found is false,
// File.Symbol may still find a symbol.
func (s *SymbolTable) Symbol(addr uint64) (sym Symbol, found bool) {
	if len(s.t.raw) == 0 {
		return sym, false
	}
	entries := s.t.count() // at least one
	if s.ready() == nil && uint64(s.lookups.Add(1)) <= min(linearLookups, 1+linearSymbols/entries) {
		sym, found = s.t.pass(addr)
	} else if t := s.sort(); t != nil {
		sym, found = t.search(addr)
	}
	return sym, found && len(sym.Name) > 0 && addr-sym.Addr < sym.Size
}

// ready returns the sorted table; nil until it is built.
func (s *SymbolTable) ready() []symbolEntry {
	if t := s.sorted.Load(); t != nil {
		return t.sorted
	}
	return nil
}

// sort returns the symbols with their sorted table, which it builds if necessary. It returns nil if
// a fault interrupted the first call.
func (s *SymbolTable) sort() *symbols {
	s.sorting.Do(func() {
		if s.sorted.Load() == nil {
			t := s.t
			t.sort()
			s.sorted.Store(&t)
		}
	})
	return s.sorted.Load()
}
