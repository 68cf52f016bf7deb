package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// A Symbol is an entry of the symbol table.
type Symbol struct {
	Name  []byte // never empty; aliases the file, valid until Close
	Addr  uint64 // link-time address, without the Thumb bit
	Size  uint64 // bytes, 0 when not known
	Type  elf.SymType
	Local bool

	index uint64 // in the table
}

// symbols is the symbol table of a file: its raw bytes, and after enough lookups the sorted addresses.
type symbols struct {
	loaded   bool
	raw      []byte // whole entries
	entry    uint64 // bytes of one
	strings  []byte
	sections []byte // SHT_SYMTAB_SHNDX: section indices that do not fit an entry; often nil

	lookups, passed uint64        // lookups done by a pass, and symbols that those looked at
	sorted          []symbolEntry // by address, none twice; nil until built

	filesListed bool
	files       []uint32 // indices of the STT_FILE symbols, in order
}

// A symbolEntry stands for one symbol in the sorted table. Its size and name are read from the raw entry.
type symbolEntry struct {
	addr  uint64
	index uint32
}

// footprint leaves out what Data counts already.
func (t *symbols) footprint() int64 {
	return int64(cap(t.sorted))*int64(unsafe.Sizeof(symbolEntry{})) + int64(cap(t.files))*int64(unsafe.Sizeof(t.files[0]))
}

// Symbol returns the symbol at addr by the rule of llvm-symbolizer: of the functions, objects and untyped symbols that
// are defined in a loaded section, the one with the greatest address not above addr; of several with that
// address, the largest, and the last of those in the table. It must cover addr; one without a size reaches to the next symbol,
// but (other than LLVM's) not beyond the end of its section.
//
// The table is .symtab, or .dynsym in a file whose .symtab is missing or empty. The first lookups pass over it as it
// lies in the file (1 ms for 130,000 symbols); later ones use a sorted table of 16 bytes a symbol, built once.
func (f *File) Symbol(addr uint64) (Symbol, bool) {
	sym, found := f.nearestSymbol(addr)
	if !found || !f.symbolCovers(&sym, addr) {
		return Symbol{}, false
	}
	return sym, true
}

// SymbolReaching is Symbol without the exception: a symbol without a size reaches to the next one, through the end of its section
// and beyond the last section of all, as llvm-symbolizer has it.
func (f *File) SymbolReaching(addr uint64) (Symbol, bool) {
	sym, found := f.nearestSymbol(addr)
	if !found || len(sym.Name) == 0 || sym.Size != 0 && addr-sym.Addr >= sym.Size {
		return Symbol{}, false
	}
	return sym, true
}

// nearestSymbol returns the symbol with the greatest address that is not above addr, whether it covers it or not.
func (f *File) nearestSymbol(addr uint64) (sym Symbol, found bool) {
	if f.closed {
		return Symbol{}, false
	}
	t := &f.symbols
	if !t.loaded {
		f.loadSymbols()
	}
	if len(t.raw) == 0 {
		return Symbol{}, false
	}
	if t.sorted == nil && t.lookups < linearLookups && t.passed < linearSymbols {
		t.lookups++
		t.passed += uint64(len(t.raw)) / t.entry
		sym, found = f.passSymbols(addr)
	} else {
		if t.sorted == nil {
			f.sortSymbols()
		}
		sym, found = f.searchSymbols(addr)
	}
	return sym, found
}

// SourceFile returns the name that the last STT_FILE symbol before sym gives, when sym is a local symbol: the
// source file that it comes from, as the compiler was given it, without a folder as a rule. sym must come from f.
// It returns nil for global symbols and where there is no such name. It aliases the file.
// The first call passes over the table.
func (f *File) SourceFile(sym Symbol) []byte {
	t := &f.symbols
	if !sym.Local || f.closed || len(t.raw) == 0 || sym.index >= uint64(len(t.raw))/t.entry {
		return nil
	}
	if !t.filesListed {
		f.listFiles()
	}
	i, _ := slices.BinarySearch(t.files, uint32(sym.index))
	if i == 0 {
		return nil
	}
	if name := t.name(f.header.u32(t.raw[uint64(t.files[i-1])*t.entry:])); len(name) > 0 {
		return name
	}
	return nil
}

// listFiles finds the STT_FILE symbols.
func (f *File) listFiles() {
	t := &f.symbols
	t.filesListed = true
	info := f.header.pick(12, 4)
	for i := range uint64(len(t.raw)) / t.entry { // at most maxSymbols: fits an index
		if elf.SymType(t.raw[i*t.entry+uint64(info)]&15) == elf.STT_FILE {
			t.files = append(t.files, uint32(i))
		}
	}
	t.files = slices.Clip(t.files)
}

// loadSymbols finds the table. One that cannot be had is as if it were not there: an address without a name is still an address.
func (f *File) loadSymbols() {
	f.symbols.loaded = true
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		for i := range f.sections {
			if s := &f.sections[i]; s.Type == kind && f.loadTable(i, s) {
				return
			}
		}
	}
}

// loadTable makes section s, of that index, the symbol table if it holds any symbol but the null one.
func (f *File) loadTable(index int, s *Section) bool {
	entry := uint64(f.header.pick(symSize32, symSize64))
	if s.Size < 2*entry || uint64(s.Link) >= uint64(len(f.sections)) || s.Link == uint32(elf.SHN_UNDEF) {
		return false
	}
	names := &f.sections[s.Link]
	if names.Type != elf.SHT_STRTAB {
		return false
	}
	raw, err := f.tableData(s)
	if err != nil || uint64(len(raw)) < 2*entry {
		return false
	}
	str, err := f.tableData(names)
	if err != nil {
		return false
	}
	count := min(uint64(len(raw))/entry, maxSymbols)
	f.symbols.raw, f.symbols.entry, f.symbols.strings = raw[:count*entry], entry, str
	for i := range f.sections {
		if x := &f.sections[i]; x.Type == elf.SHT_SYMTAB_SHNDX && x.Link == uint32(index) {
			if b, err := f.tableData(x); err == nil {
				f.symbols.sections = b
			}
			break
		}
	}
	return true
}

// tableData is Data for a section that is known by its header. A name that another section bears too is no key.
func (f *File) tableData(s *Section) ([]byte, error) {
	key := s.Name
	if f.section(s.Name) != s {
		key = "\x00" + s.Name + "\x00" + string(binary.LittleEndian.AppendUint64(nil, s.Offset))
	}
	return f.sectionData(key, s, false)
}

// name returns the name at off of the string table, empty where there is none.
func (t *symbols) name(off uint32) []byte {
	if uint64(off) >= uint64(len(t.strings)) {
		return nil
	}
	s := t.strings[off:]
	if end := bytes.IndexByte(s, 0); end >= 0 {
		return s[:end:end]
	}
	return nil // not ended inside the table
}

// at decodes the entry of that index. It says nothing about whether the symbol counts.
func (f *File) symbolAt(index uint64) (sym Symbol, name uint32, shndx uint16) {
	t := &f.symbols
	b := t.raw[index*t.entry:]
	b = b[:t.entry]
	var info byte
	if f.header.is64 {
		info, shndx = b[4], f.header.u16(b[6:])
		sym.Addr, sym.Size = f.header.u64(b[8:]), f.header.u64(b[16:])
	} else {
		info, shndx = b[12], f.header.u16(b[14:])
		sym.Addr, sym.Size = uint64(f.header.u32(b[4:])), uint64(f.header.u32(b[8:]))
	}
	sym.Type = elf.SymType(info & 15)
	sym.Local = elf.SymBind(info>>4) == elf.STB_LOCAL
	sym.index = index
	if f.Machine == elf.EM_ARM && sym.Type == elf.STT_FUNC {
		sym.Addr &^= 1 // the Thumb bit
	}
	return sym, f.header.u32(b), shndx
}

// symbolSection returns the section that an entry is defined in, or nil where the file does not say which;
// ok is false for one that is not defined in any, or in none that is loaded.
func (f *File) symbolSection(index uint64, shndx uint16) (s *Section, ok bool) {
	n := uint64(shndx)
	switch i := elf.SectionIndex(shndx); {
	case i == elf.SHN_XINDEX:
		if x := f.symbols.sections; (index+1)*4 <= uint64(len(x)) {
			n = uint64(f.header.u32(x[index*4:]))
			break
		}
		return nil, true
	case i == elf.SHN_UNDEF || i >= elf.SHN_LORESERVE:
		return nil, false
	}
	if n >= uint64(len(f.sections)) {
		return nil, false
	}
	s = &f.sections[n]
	return s, s.Flags&elf.SHF_ALLOC != 0
}

// symbolCounts reports whether an entry names anything that an address can be in.
func (f *File) symbolCounts(sym *Symbol, name uint32, shndx uint16) bool {
	switch sym.Type {
	case elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_OBJECT, elf.STT_GNU_IFUNC:
	default:
		return false
	}
	if sym.index == 0 {
		return false
	}
	if _, ok := f.symbolSection(sym.index, shndx); !ok {
		return false
	}
	t := &f.symbols
	if uint64(name) >= uint64(len(t.strings)) || t.strings[name] == 0 {
		return false
	}
	switch t.strings[name] {
	case '$':
		return !f.mappingSymbol(t.strings[name:])
	case '.': // a label that an assembler made for the difference of two
		return f.Machine != elf.EM_RISCV || !bytes.HasPrefix(t.strings[name:], []byte(".L0 "))
	}
	return true
}

// mappingSymbol reports whether the name at the front of b marks a change between code and data, for disassemblers:
// "$d" or "$d.anything" of the ABIs of Arm and RISC-V, where "$x" may bear the instruction set, "$xrv64gc".
// It looks at the first bytes only, however far away the end of the name is.
func (f *File) mappingSymbol(b []byte) bool {
	var kinds string
	switch f.Machine {
	case elf.EM_ARM:
		kinds = "atd"
	case elf.EM_AARCH64, elf.EM_RISCV:
		kinds = "xd"
	default:
		return false
	}
	if len(b) < 3 || strings.IndexByte(kinds, b[1]) < 0 {
		return false
	}
	return b[2] == 0 || b[2] == '.' || f.Machine == elf.EM_RISCV && bytes.HasPrefix(b, []byte("$xrv"))
}

// passSymbols looks at every entry for the best one at or below addr.
func (f *File) passSymbols(addr uint64) (best Symbol, found bool) {
	t := &f.symbols
	// Nearly all entries are told by their address alone, at 3 GB/s in the common layout.
	fast := f.header.is64 && !f.header.big && f.Machine != elf.EM_ARM
	n := uint64(len(t.raw)) / t.entry
	for i := uint64(1); i < n; i++ {
		if fast {
			v := binary.LittleEndian.Uint64(t.raw[i*symSize64+8:])
			if v > addr || found && v < best.Addr {
				continue
			}
		}
		sym, name, shndx := f.symbolAt(i)
		if sym.Addr > addr || found && (sym.Addr < best.Addr || sym.Addr == best.Addr && sym.Size < best.Size) {
			continue
		}
		if f.symbolCounts(&sym, name, shndx) {
			best, found = sym, true
		}
	}
	if found {
		f.setName(&best)
	}
	return best, found
}

func (f *File) setName(sym *Symbol) {
	t := &f.symbols
	sym.Name = t.name(f.header.u32(t.raw[sym.index*t.entry:]))
}

// sortSymbols builds the sorted table.
func (f *File) sortSymbols() {
	t := &f.symbols
	n := uint64(len(t.raw)) / t.entry // at most maxSymbols: fits an index
	all := make([]symbolEntry, 0, n)
	for i := uint64(1); i < n; i++ {
		sym, name, shndx := f.symbolAt(i)
		if f.symbolCounts(&sym, name, shndx) {
			all = append(all, symbolEntry{sym.Addr, uint32(i)})
		}
	}
	sortByAddr(all)
	// Of those at one address the largest stays, and the last of these.
	kept := all[:0]
	for _, e := range all {
		if last := len(kept) - 1; last >= 0 && kept[last].addr == e.addr {
			if f.symbolSize(e.index) >= f.symbolSize(kept[last].index) {
				kept[last] = e
			}
			continue
		}
		kept = append(kept, e)
	}
	if cap(all)-len(kept) > cap(all)/8 {
		kept = slices.Clone(kept)
	}
	t.sorted = slices.Clip(kept)
	if t.sorted == nil {
		t.sorted = []symbolEntry{} // built, and empty
	}
}

func (f *File) symbolSize(index uint32) uint64 {
	sym, _, _ := f.symbolAt(uint64(index))
	return sym.Size
}

// searchSymbols looks the best symbol at or below addr up in the sorted table.
func (f *File) searchSymbols(addr uint64) (Symbol, bool) {
	t := &f.symbols
	lo, hi := 0, len(t.sorted) // the first above addr is in [lo, hi]
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if t.sorted[mid].addr <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return Symbol{}, false
	}
	sym, _, _ := f.symbolAt(uint64(t.sorted[lo-1].index))
	f.setName(&sym)
	return sym, true
}

// symbolCovers reports whether addr, at or above the symbol's address, belongs to it.
func (f *File) symbolCovers(sym *Symbol, addr uint64) bool {
	if len(sym.Name) == 0 {
		return false
	}
	if sym.Size != 0 {
		return addr-sym.Addr < sym.Size
	}
	t := &f.symbols
	b := t.raw[sym.index*t.entry:]
	s, _ := f.symbolSection(sym.index, f.header.u16(b[f.header.pick(14, 6):]))
	if s == nil {
		return true
	}
	end := uint64(math.MaxUint64)
	if s.Size <= end-s.Addr {
		end = s.Addr + s.Size
	}
	return addr < end || addr == sym.Addr
}
