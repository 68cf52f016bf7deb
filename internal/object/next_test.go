package object

import (
	"math"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// nextOfAll returns the expected result of NextSymbol, from all fields of every symbol.
func nextOfAll(sym *Symbol, from uint64) (addr uint64, ok bool) {
	t := sym.table
	_, _, section := t.at(sym.index)
	in, _ := t.section(sym.index, section)
	for i := range uint64(len(t.raw)) / t.entry {
		s, name, shndx := t.at(i)
		if t.counts(&s, name, shndx) && shndx == section && (in == nil || in.covers(s.Addr)) && s.Addr > from && (!ok || s.Addr < addr) {
			addr, ok = s.Addr, true
		}
	}
	return addr, ok
}

// NextSymbol must return the same symbol from the list and from a scan, and the same as nextOfAll.
func TestTheNextSymbolIsTheSameByTheList(t *testing.T) {
	fuzztest.WithoutRace(t)
	listed, found := 0, 0
	for _, path := range machineFiles(t) {
		f := open(t, path)
		var symbols []Symbol
		for sym := range f.Symbols() {
			if symbols = append(symbols, sym); len(symbols) == 500 {
				break
			}
		}
		table := f.primary()
		for _, sym := range symbols {
			sym.table = table
			for _, from := range []uint64{sym.Addr, sym.Addr - 1, sym.Addr + sym.Size, 0, math.MaxUint64 - 1, math.MaxUint64} {
				want, wantOK := nextOfAll(&sym, from)
				if wantOK {
					found++
				}
				for _, searches := range []int{0, linearNext} {
					table.rarely().next.searches = searches
					if got, ok := f.NextSymbol(&sym, from); got != want || ok != wantOK {
						t.Errorf("%s: search %d after %s from %#x: %#x, %v; want %#x, %v", path, searches, sym.Name, from, got, ok, want, wantOK)
					}
				}
			}
		}
		listed += len(table.rarely().next.codes)
	}
	if listed == 0 || found < 1000 {
		t.Errorf("%d entries of lists, %d symbols found", listed, found)
	}
}

// The list must have each address of a section once, and no address after the section's end.
func TestTheNextSymbolIsInTheSection(t *testing.T) {
	m := layouts[0]
	m.sections = append([]imageSection(nil), symbolSections...)
	m.sections = append(m.sections, m.symtab(t, 2, 5, []imageSymbol{
		{"first", 0x1000, 4, 2, 1, 1}, {"alias", 0x1000, 4, 2, 1, 1}, {"second", 0x1010, 4, 2, 1, 1},
	})...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 * linearNext {
		first, second := f.SymbolsNamed("first")[0], f.SymbolsNamed("second")[0]
		if next, ok := f.NextSymbol(&first, first.Addr); next != 0x1010 || !ok {
			t.Fatalf("after first: %#x, %v", next, ok)
		}
		if next, ok := f.NextSymbol(&second, second.Addr); ok {
			t.Fatalf("after second: %#x", next)
		}
	}
}
