package object

import (
	"testing"
)

// The symbol after another one is the same if it is found by the list and by a scan.
func TestTheNextSymbolIsTheSameByTheList(t *testing.T) {
	listed := 0
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
			table.next.searches = 0
			want, wantOK := f.NextSymbol(&sym, sym.Addr)
			table.next.searches = linearNext
			if got, ok := f.NextSymbol(&sym, sym.Addr); got != want || ok != wantOK {
				t.Errorf("%s: after %s at %#x: %#x, %v; want %#x, %v", path, sym.Name, sym.Addr, got, ok, want, wantOK)
			}
		}
		listed += len(table.next.codes)
	}
	if listed == 0 {
		t.Error("no list")
	}
}

// The list has each address of a section once, and not those after its end.
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
