package object

import (
	"debug/elf"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// oracle answers like llvm-symbolizer does: from the sorted list of all symbols that count, of those at one address the last.
type oracle []elf.Symbol

func newOracle(t *testing.T, f *elf.File) oracle {
	t.Helper()
	symbols, err := f.Symbols()
	if len(symbols) == 0 {
		symbols, err = f.DynamicSymbols()
	}
	if err != nil {
		return nil
	}
	var all oracle
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || int(s.Section) >= len(f.Sections) ||
			f.Sections[s.Section].Flags&elf.SHF_ALLOC == 0 || s.Name == "" {
			continue
		}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_OBJECT, elf.STT_GNU_IFUNC:
			all = append(all, s)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return a.Value < b.Value || a.Value == b.Value && a.Size < b.Size
	})
	var kept oracle
	for i, s := range all {
		if i+1 == len(all) || all[i+1].Value != s.Value {
			kept = append(kept, s)
		}
	}
	return kept
}

func (o oracle) at(f *elf.File, addr uint64) (elf.Symbol, bool) {
	i := sort.Search(len(o), func(i int) bool { return o[i].Value > addr }) - 1
	if i < 0 {
		return elf.Symbol{}, false
	}
	s := o[i]
	section := f.Sections[s.Section]
	switch {
	case s.Size != 0:
		return s, addr-s.Value < s.Size
	default:
		return s, addr == s.Value || addr-section.Addr < section.Size
	}
}

func TestSymbolIsThatOfAllSymbolsSorted(t *testing.T) {
	for _, path := range machineFiles(t) {
		std, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer std.Close()
		o := newOracle(t, std)
		if len(o) == 0 {
			continue
		}
		random := rand.New(rand.NewPCG(1, uint64(len(o))))
		var addrs []uint64
		for range linearLookups * 4 { // by pass first, then by the table
			s := o[random.IntN(len(o))]
			addrs = append(addrs, s.Value+random.Uint64N(s.Size+2)-1)
			addrs = append(addrs, s.Value+random.Uint64N(1<<14))
		}
		addrs = append(addrs, 0, ^uint64(0), o[0].Value-1, o[len(o)-1].Value+1)
		compareSymbols(t, path, open(t, path), std, o, addrs)
		slices.Reverse(addrs)
		compareSymbols(t, path, open(t, path), std, o, addrs)
	}
}

func compareSymbols(t *testing.T, path string, f *File, std *elf.File, o oracle, addrs []uint64) {
	t.Helper()
	found := 0
	for _, addr := range addrs {
		got, ok := f.Symbol(addr)
		want, wantOK := o.at(std, addr)
		if ok != wantOK || ok && (string(got.Name) != want.Name || got.Addr != want.Value || got.Size != want.Size ||
			got.Type != elf.ST_TYPE(want.Info) || got.Local != (elf.ST_BIND(want.Info) == elf.STB_LOCAL)) {
			t.Errorf("%s: Symbol(%#x) = %s %+v, %v; want %+v, %v", path, addr, got.Name, got, ok, want, wantOK)
			return
		}
		if ok {
			found++
		}
	}
	if found == 0 {
		t.Errorf("%s: no address has a symbol", path)
	}
	if f.symbols.sorted == nil {
		t.Errorf("%s: the sorted table was never built", path)
	}
}
