package object

import (
	"cmp"
	"debug/elf"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// An oracle finds symbols in a sorted list of all eligible symbols. With lastAlias, it keeps the
// last of several symbols at an address, as llvm-symbolizer does.
type oracle []elf.Symbol

func newOracle(t *testing.T, f *elf.File, lastAlias bool) oracle {
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
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Size, b.Size), cmp.Compare(aliasRank(a, lastAlias), aliasRank(b, lastAlias))) < 0
	})
	var kept oracle
	for i, s := range all {
		if i+1 == len(all) || all[i+1].Value != s.Value {
			kept = append(kept, s)
		}
	}
	return kept
}

// aliasRank returns the sort key of symbols with equal addresses and sizes.
func aliasRank(s elf.Symbol, lastAlias bool) string {
	if lastAlias {
		return ""
	}
	if strings.HasPrefix(s.Name, "__GI_") {
		return "0"
	}
	return "1"
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
		return s, addr == s.Value || addr < section.Addr+section.Size
	}
}

func TestSymbolIsThatOfAllSymbolsSorted(t *testing.T) {
	for _, path := range machineFiles(t) {
		std, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer std.Close()
		for _, lastAlias := range []bool{false, true} {
			compareAll(t, path, std, lastAlias)
		}
	}
}

// compareAll compares the symbols of a file with the oracle's.
func compareAll(t *testing.T, path string, std *elf.File, lastAlias bool) {
	t.Helper()
	o := newOracle(t, std, lastAlias)
	if len(o) == 0 {
		return
	}
	opened := func() *File {
		f := open(t, path)
		f.room.LastAlias = lastAlias
		return f
	}
	random := rand.New(rand.NewPCG(1, uint64(len(o))))
	var addrs []uint64
	for range linearLookups * 4 { // first with pass, then with the sorted table
		s := o[random.IntN(len(o))]
		addrs = append(addrs, s.Value+random.Uint64N(s.Size+2)-1)
		addrs = append(addrs, s.Value+random.Uint64N(1<<14))
	}
	addrs = append(addrs, 0, ^uint64(0), o[0].Value-1, o[len(o)-1].Value+1)
	compareSymbols(t, path, opened(), std, o, addrs)
	slices.Reverse(addrs)
	compareSymbols(t, path, opened(), std, o, addrs)
}

func compareSymbols(t *testing.T, path string, f *File, std *elf.File, o oracle, addrs []uint64) {
	t.Helper()
	found := 0
	for _, addr := range addrs {
		got, ok := f.Symbol(addr)
		want, wantOK := o.at(std, addr)
		if wantOK && want.Size == 0 && f.unwindSeparates(want.Value, addr) {
			wantOK = false
		}
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

// Sections 1 and 2 of the tables below are loaded at these addresses; section 3 is not loaded.
var symbolSections = []imageSection{
	{Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000}, "this text is 32 bytes, 0x20, long"[:32]},
	{Section{Name: ".bss", Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Addr: 0x2000, Size: 0x100}, ""},
	{Section{Name: ".comment", Type: elf.SHT_PROGBITS}, "by hand"},
}

func TestSymbol(t *testing.T) {
	const (
		notype, object, function, section, file, common, tls, ifunc = elf.STT_NOTYPE, elf.STT_OBJECT, elf.STT_FUNC, elf.STT_SECTION, elf.STT_FILE, elf.STT_COMMON, elf.STT_TLS, elf.STT_GNU_IFUNC
		local, global, weak                                         = elf.STB_LOCAL, elf.STB_GLOBAL, elf.STB_WEAK
	)
	tests := []struct {
		name    string
		machine elf.Machine // x86-64 if 0
		symbols []imageSymbol
		addr    uint64
		want    string // empty: none
	}{
		{"first byte", 0, []imageSymbol{{"f", 0x1000, 4, function, global, 1}}, 0x1000, "f"},
		{"last byte", 0, []imageSymbol{{"f", 0x1000, 4, function, global, 1}}, 0x1003, "f"},
		{"behind the end", 0, []imageSymbol{{"f", 0x1000, 4, function, global, 1}}, 0x1004, ""},
		{"before the first", 0, []imageSymbol{{"f", 0x1000, 4, function, global, 1}}, 0xfff, ""},
		{"size that wraps", 0, []imageSymbol{{"f", 0x1000, ^uint64(0), function, global, 1}}, 0x3000, "f"},
		{"no size reaches to the next", 0, []imageSymbol{{"a", 0x1000, 0, notype, global, 1}, {"b", 0x1010, 0, notype, global, 1}}, 0x100f, "a"},
		{"no size ends with its section", 0, []imageSymbol{{"f", 0x1000, 0, function, global, 1}}, 0x1020, ""},
		{"no size, last byte of its section", 0, []imageSymbol{{"f", 0x1000, 0, function, global, 1}}, 0x101f, "f"},
		{"no size at the end of its section", 0, []imageSymbol{{"_etext", 0x1020, 0, notype, global, 1}}, 0x1020, "_etext"},
		{"a smaller one inside hides", 0, []imageSymbol{{"outer", 0x1000, 32, function, global, 1}, {"inner", 0x1008, 4, function, local, 1}}, 0x1010, ""},
		{"the largest of one address", 0, []imageSymbol{{"large", 0x1000, 8, function, global, 1}, {"small", 0x1000, 4, function, global, 1}}, 0x1000, "large"},
		{"the last of equals", 0, []imageSymbol{{"one", 0x1000, 8, function, global, 1}, {"two", 0x1000, 8, object, global, 1}}, 0x1007, "two"},
		{"local aliases", 0, []imageSymbol{{"__clone3", 0x1000, 8, function, local, 1}, {"clone3", 0x1000, 8, function, local, 1}, {"__GI___clone3", 0x1000, 8, function, local, 1}}, 0x1000, "clone3"},
		{"a larger alias", 0, []imageSymbol{{"clone3", 0x1000, 7, function, local, 1}, {"__GI___clone3", 0x1000, 8, function, local, 1}}, 0x1000, "__GI___clone3"},
		{"mangled aliases", 0, []imageSymbol{{"call", 0x1000, 8, function, weak, 1}, {"_ZN1AC2Ev", 0x1000, 8, function, weak, 1}, {"_ZN1AC1Ev", 0x1000, 8, function, weak, 1}}, 0x1000, "_ZN1AC1Ev"},
		{"order of the table does not matter", 0, []imageSymbol{{"b", 0x1010, 8, function, global, 1}, {"a", 0x1000, 8, function, global, 1}}, 0x1001, "a"},
		{"object in .bss", 0, []imageSymbol{{"o", 0x2000, 16, object, global, 2}}, 0x200f, "o"},
		{"indirect function", 0, []imageSymbol{{"i", 0x1000, 16, ifunc, global, 1}}, 0x100f, "i"},
		{"other types do not count", 0, []imageSymbol{
			{"section", 0x1000, 8, section, local, 1}, {"file", 0x1000, 8, file, local, 1}, {"common", 0x1000, 8, common, global, 1}, {"tls", 0x1000, 8, tls, global, 1}}, 0x1000, ""},
		{"undefined", 0, []imageSymbol{{"u", 0x1000, 8, function, global, elf.SHN_UNDEF}}, 0x1000, ""},
		{"absolute", 0, []imageSymbol{{"a", 0x1000, 8, function, global, elf.SHN_ABS}}, 0x1000, ""},
		{"common", 0, []imageSymbol{{"c", 0x1000, 8, object, global, elf.SHN_COMMON}}, 0x1000, ""},
		{"section not loaded", 0, []imageSymbol{{"c", 0x1000, 8, notype, local, 3}}, 0x1000, ""},
		{"section that is not there", 0, []imageSymbol{{"c", 0x1000, 8, notype, local, 300}}, 0x1000, ""},
		{"section index elsewhere", 0, []imageSymbol{{"x", 0x1000, 8, function, local, elf.SHN_XINDEX}}, 0x1000, "x"},
		{"no name", 0, []imageSymbol{{"f", 0x1000, 8, function, local, 1}, {"", 0x1000, 8, function, local, 1}}, 0x1000, "f"},
		{"dollar is a name", 0, []imageSymbol{{"$x", 0x1000, 8, function, local, 1}}, 0x1000, "$x"},
		{"mapping symbols of AArch64", elf.EM_AARCH64, []imageSymbol{
			{"f", 0x1000, 16, function, global, 1}, {"$x", 0x1000, 0, notype, local, 1}, {"$d.7", 0x1008, 0, notype, local, 1}}, 0x1009, "f"},
		{"other dollars of AArch64", elf.EM_AARCH64, []imageSymbol{{"f", 0x1000, 16, function, global, 1}, {"$data", 0x1008, 4, object, local, 1}}, 0x1009, "$data"},
		{"mapping symbols of Arm", elf.EM_ARM, []imageSymbol{
			{"f", 0x1000, 16, function, global, 1}, {"$a", 0x1000, 0, notype, local, 1}, {"$t", 0x1004, 0, notype, local, 1}, {"$d", 0x1008, 0, notype, local, 1}}, 0x1009, "f"},
		{"mapping symbols of RISC-V", elf.EM_RISCV, []imageSymbol{
			{"f", 0x1000, 16, function, global, 1}, {"$xrv64i2p1_c2p0", 0x1000, 0, notype, local, 1}, {"$d", 0x1008, 0, notype, local, 1}}, 0x1009, "f"},
		{"labels of RISC-V", elf.EM_RISCV, []imageSymbol{{"f", 0x1000, 16, function, global, 1}, {".L0 ", 0x1004, 0, notype, local, 1}}, 0x1009, "f"},
		{"labels of others", elf.EM_X86_64, []imageSymbol{{"f", 0x1000, 16, function, global, 1}, {".L0 ", 0x1004, 0, notype, local, 1}}, 0x1009, ".L0 "},
		{"Thumb bit", elf.EM_ARM, []imageSymbol{{"thumb", 0x1001, 4, function, global, 1}}, 0x1000, "thumb"},
		{"Thumb bit of functions only", elf.EM_ARM, []imageSymbol{{"label", 0x1001, 4, notype, global, 1}}, 0x1000, ""},
		{"no symbols", 0, nil, 0x1000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := image{machine: elf.EM_X86_64}
			if tt.machine != 0 {
				m.machine = tt.machine
			}
			m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, tt.symbols)...)
			f, err := openBytes(m.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, how := range []string{"by pass", "by table"} {
				if how == "by table" {
					f.symbols.lookups = linearLookups
				}
				sym, ok := f.Symbol(tt.addr)
				if string(sym.Name) != tt.want || ok != (tt.want != "") {
					t.Errorf("%s: Symbol(%#x) = %q, %v; want %q", how, tt.addr, sym.Name, ok, tt.want)
				}
			}
		})
	}
}

func TestSymbolReachingGoesOnToTheNextSymbol(t *testing.T) {
	m := image{machine: elf.EM_X86_64}
	m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, []imageSymbol{
		{"sized", 0x1000, 4, elf.STT_FUNC, elf.STB_GLOBAL, 1},
		{"label", 0x1010, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, 1},
		{"object", 0x2000, 8, elf.STT_OBJECT, elf.STB_GLOBAL, 2},
		{"_end", 0x2100, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, 2},
	})...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tt := range []struct {
		addr uint64
		want string
	}{
		{0xfff, ""}, {0x1003, "sized"}, {0x1004, ""}, {0x101f, "label"}, {0x1020, "label"}, {0x1fff, "label"},
		{0x2007, "object"}, {0x2008, ""}, {0x2100, "_end"}, {0x1 << 40, "_end"}, {^uint64(0), "_end"},
	} {
		sym, ok := f.SymbolReaching(tt.addr)
		if string(sym.Name) != tt.want || ok != (tt.want != "") {
			t.Errorf("SymbolReaching(%#x) = %q, %v; want %q", tt.addr, sym.Name, ok, tt.want)
		}
	}
}

func TestSymbolIsTheSameByPassAndByTable(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	for _, m := range layouts {
		t.Run(m.name(), func(t *testing.T) {
			for range 50 {
				var symbols []imageSymbol
				for range random.IntN(60) {
					symbols = append(symbols, imageSymbol{
						name: []string{"", "$d", "$a", "f", "g", "long_name"}[random.IntN(6)],
						addr: 0x1000 + random.Uint64N(0x30), size: random.Uint64N(3) * random.Uint64N(0x10),
						kind: elf.SymType(random.IntN(4)), bind: elf.SymBind(random.IntN(2)), section: elf.SectionIndex(random.IntN(4)),
					})
				}
				m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, symbols)...)
				b := m.bytes(t)
				pass, err := openBytes(b)
				if err != nil {
					t.Fatal(err)
				}
				table, err := openBytes(b)
				if err != nil {
					t.Fatal(err)
				}
				table.symbols.lookups = linearLookups
				for addr := uint64(0xff0); addr < 0x1060; addr++ {
					pass.symbols.lookups = 0
					got, ok := table.Symbol(addr)
					want, wantOK := pass.Symbol(addr)
					if ok != wantOK || got.index != want.index || string(got.Name) != string(want.Name) || got.Addr != want.Addr {
						t.Fatalf("Symbol(%#x) by table = %+v, %v; by pass %+v, %v; of %+v", addr, got, ok, want, wantOK, symbols)
					}
				}
			}
		})
	}
}

func TestSymbolOfDynsymWhereSymtabIsEmpty(t *testing.T) {
	for _, m := range layouts {
		f1 := []imageSymbol{{"dynamic", 0x1000, 4, elf.STT_FUNC, elf.STB_GLOBAL, 1}}
		f2 := []imageSymbol{{"static", 0x1000, 4, elf.STT_FUNC, elf.STB_GLOBAL, 1}}
		for _, tt := range []struct {
			name   string
			static []imageSymbol
			want   string
		}{{"empty", nil, "dynamic"}, {"not empty", f2, "static"}} {
			m := m
			m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_DYNSYM, 5, f1)...)
			m.sections = append(m.sections, m.symtab(t, elf.SHT_SYMTAB, 7, tt.static)...)
			f, err := openBytes(m.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if sym, _ := f.Symbol(0x1002); string(sym.Name) != tt.want {
				t.Errorf("%s, .symtab %s: Symbol = %q, want %q", m.name(), tt.name, sym.Name, tt.want)
			}
		}
	}
}

func TestSourceFileIsOfLocalSymbols(t *testing.T) {
	m := image{machine: elf.EM_X86_64}
	m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, []imageSymbol{
		{"early", 0x1000, 1, elf.STT_FUNC, elf.STB_LOCAL, 1},
		{"a.c", 0, 0, elf.STT_FILE, elf.STB_LOCAL, elf.SHN_ABS},
		{"of_a", 0x1001, 1, elf.STT_FUNC, elf.STB_LOCAL, 1},
		{"b.c", 0, 0, elf.STT_FILE, elf.STB_LOCAL, elf.SHN_ABS},
		{"of_b", 0x1002, 1, elf.STT_FUNC, elf.STB_LOCAL, 1},
		{"", 0, 0, elf.STT_FILE, elf.STB_LOCAL, elf.SHN_ABS},
		{"of_linker", 0x1003, 1, elf.STT_FUNC, elf.STB_LOCAL, 1},
		{"global", 0x1004, 1, elf.STT_FUNC, elf.STB_GLOBAL, 1},
	})...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, want := range []string{"", "a.c", "b.c", "", ""} {
		sym, ok := f.Symbol(0x1000 + uint64(i))
		if got := string(f.SourceFile(sym)); !ok || got != want {
			t.Errorf("SourceFile(%s) = %q, want %q", sym.Name, got, want)
		}
	}
}

// SourceFile must not walk back from each symbol: 2^37 steps would take minutes.
func TestSourceFileOfManySymbols(t *testing.T) {
	fuzztest.WithoutRace(t)
	const n = 1 << 19
	m := image{machine: elf.EM_X86_64}
	symbols := make([]imageSymbol, n)
	symbols[0] = imageSymbol{"a.c", 0, 0, elf.STT_FILE, elf.STB_LOCAL, elf.SHN_ABS}
	for i := range symbols[1:] {
		symbols[1+i] = imageSymbol{"f", 0x1000 + uint64(i), 1, elf.STT_FUNC, elf.STB_LOCAL, 1}
	}
	m.sections = append(slices.Clone(symbolSections), m.symtab(t, elf.SHT_SYMTAB, 5, symbols)...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	byTable(f)
	f.Symbol(0x1000)
	f.symbols.rarely()
	before := f.Footprint()
	for i := range symbols[1:] {
		sym, _ := f.Symbol(0x1000 + uint64(i))
		if got := string(f.SourceFile(sym)); got != "a.c" {
			t.Fatalf("SourceFile of symbol %d = %q, want a.c", i, got)
		}
	}
	if got := f.Footprint() - before; got != 4 {
		t.Errorf("the list of one source file takes %d bytes, want 4", got)
	}
}

func TestSymbolByPassAllocatesNothing(t *testing.T) {
	f := open(t, machineFiles(t)[0])
	s, _ := f.Section(".text")
	f.Symbol(s.Addr)
	if n := testing.AllocsPerRun(10, func() {
		f.symbols.lookups = 0
		f.Symbol(s.Addr + s.Size/2)
	}); n != 0 {
		t.Errorf("Symbol: %v allocations, want 0", n)
	}
}

// TableEntries must return the entries that debug/elf reads, in the same order.
func TestTableEntriesAreThoseOfTheFile(t *testing.T) {
	const path = "../../testdata/backtraces/programs/traces"
	std, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer std.Close()
	f := open(t, path)
	for kind, read := range map[elf.SectionType]func() ([]elf.Symbol, error){elf.SHT_SYMTAB: std.Symbols, elf.SHT_DYNSYM: std.DynamicSymbols} {
		want, err := read()
		if err != nil || len(want) < 10 {
			t.Fatalf("%s: %d symbols, %v", kind, len(want), err)
		}
		n := 0
		for e := range f.TableEntries(kind) {
			w := &want[n]
			section := int(w.Section)
			if w.Section >= elf.SHN_LORESERVE {
				section = 0
			}
			if n++; string(e.Name) != w.Name || e.Addr != w.Value || e.Size != w.Size || e.Type != elf.ST_TYPE(w.Info) || e.Bind != elf.ST_BIND(w.Info) ||
				e.Hidden != (elf.ST_VISIBILITY(w.Other) == elf.STV_HIDDEN) || e.Section != section || e.Index != uint64(n) {
				t.Fatalf("entry %d: got %+v, want %+v", n, e, *w)
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d entries, want %d", kind, n, len(want))
		}
	}
}
