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
	Size  uint64 // bytes; 0: not known
	Type  elf.SymType
	Local bool

	index uint64   // in the table
	table *symbols // table of the symbol
}

// symbols is a symbol table of a file: its raw bytes, and after enough lookups the sorted
// addresses.
type symbols struct {
	f        *File
	loaded   bool
	kind     elf.SectionType
	raw      []byte // whole entries
	entry    uint64 // bytes of an entry
	strings  []byte
	sections []byte // SHT_SYMTAB_SHNDX: section indices that do not fit an entry; often nil

	lookups, passed uint64        // lookups that scanned the table, and symbols scanned
	sorted          []symbolEntry // by address, none twice; nil until built
	shared          *SymbolTable  // nil until there is one

	names nameTable
	words wordTable
	next  nextTable

	filesListed bool
	files       []uint32 // indices of the STT_FILE symbols, in order
}

// A symbolEntry is a symbol in the sorted table. Its size and name are read from the raw entry.
type symbolEntry struct {
	addr  uint64
	index uint32
}

// footprint does not include sections, which Data counts.
func (t *symbols) footprint() int64 {
	if t == nil {
		return 0
	}
	sorted := t.sorted
	if t.shared != nil && sorted == nil {
		sorted = t.shared.ready()
	}
	return int64(cap(sorted))*int64(unsafe.Sizeof(symbolEntry{})) + int64(cap(t.files))*int64(unsafe.Sizeof(t.files[0])) + t.names.footprint() + t.words.footprint() + t.next.footprint()
}

// Symbol returns the symbol at addr by the rule of llvm-symbolizer: of the functions, objects and
// untyped symbols that are defined in a loaded section, the one with the greatest address not above
// addr; of several with that address, the largest. Of aliases with one size it is the last one
// in the table that is not internal: see [symbols.isInternal]. With Options.LastAlias it is the last one, as in LLVM. It must
// cover addr; one without a size reaches to the next symbol, but (unlike in LLVM) neither beyond
// the end of its section nor into another function of unwind information.
//
// The table is .symtab, or .dynsym in a file whose .symtab is missing or empty. If that has no
// symbol with a size for addr, the other tables of the file are searched by the same rule: .dynsym
// beside a .symtab, and MiniDebugInfo, which is unpacked then. A symbol whose size covers addr is
// preferred to one without a size, then the nearest, then the one of the table searched first.
//
// The first lookups scan a table in the file (1 ms for 130,000 symbols); later ones use a sorted
// table of 16 bytes a symbol, built once.
func (f *File) Symbol(addr uint64) (Symbol, bool) {
	if f.closed {
		return Symbol{}, false
	}
	best, found := f.primary().covering(addr)
	if found && best.Size != 0 {
		return best, true
	}
	more := func(sym Symbol, ok bool) {
		if ok && (!found || best.Size == 0 && sym.Size != 0 || (best.Size == 0) == (sym.Size == 0) && sym.Addr > best.Addr) {
			best, found = sym, true
		}
	}
	more(f.secondary().covering(addr))
	if found && best.Size != 0 {
		return best, true
	}
	if m, _ := f.Mini(); m != nil { // one that cannot be unpacked is ignored
		more(m.primary().covering(addr))
	}
	if found && best.Size == 0 && f.unwindSeparates(best.Addr, addr) {
		return Symbol{}, false
	}
	return best, found
}

// LoadSymbols prepares ReadySymbol. It reports whether that will scan the table, or sort it, in some
// tenths of a millisecond.
func (f *File) LoadSymbols() (slow bool) {
	if f.closed {
		return false
	}
	t := f.primary()
	return t.sorted == nil && t.entry > 0 && uint64(len(t.raw))/t.entry >= slowSymbols
}

// ReadySymbol is Symbol, but finds no symbol if that needs more than the table that LoadSymbols has
// loaded. If no section is compressed, another goroutine may read sections meanwhile.
func (f *File) ReadySymbol(addr uint64) (Symbol, bool) {
	t := &f.symbols
	if f.closed || !t.loaded {
		return Symbol{}, false
	}
	sym, found := t.covering(addr)
	return sym, found && sym.Size != 0
}

// SymbolReaching is Symbol by llvm-symbolizer's rule: only from the first table, and a symbol
// without a size reaches to the next one, beyond the end of its section and of the last section.
func (f *File) SymbolReaching(addr uint64) (Symbol, bool) {
	if f.closed {
		return Symbol{}, false
	}
	sym, found := f.primary().nearest(addr)
	if !found || len(sym.Name) == 0 || sym.Size != 0 && addr-sym.Addr >= sym.Size {
		return Symbol{}, false
	}
	return sym, true
}

// covering returns the nearest symbol at or below addr, if it covers addr.
func (t *symbols) covering(addr uint64) (Symbol, bool) {
	sym, found := t.nearest(addr)
	if !found || !t.covers(&sym, addr) {
		return Symbol{}, false
	}
	return sym, true
}

// nearest returns the symbol with the greatest address that is not above addr, whether it covers it
// or not.
func (t *symbols) nearest(addr uint64) (sym Symbol, found bool) {
	if len(t.raw) == 0 {
		return Symbol{}, false
	}
	if t.sorted == nil && t.shared != nil {
		t.sorted = t.shared.ready()
	}
	if t.sorted == nil && t.lookups < linearLookups && t.passed < linearSymbols {
		t.lookups++
		t.passed += uint64(len(t.raw)) / t.entry
		return t.pass(addr)
	}
	t.makeSorted()
	return t.search(addr)
}

// SourceFile returns the name of the last STT_FILE symbol before sym, if sym is a local symbol: its
// source file as given to the compiler, usually without a directory. sym must come from f. It
// returns nil for global symbols and if there is no such name. The name aliases the file. The first
// call scans the table.
func (f *File) SourceFile(sym Symbol) []byte {
	t := sym.table
	if !sym.Local || t == nil || len(t.raw) == 0 || sym.index >= uint64(len(t.raw))/t.entry {
		return nil
	}
	if !t.filesListed {
		t.listFiles()
	}
	i, _ := slices.BinarySearch(t.files, uint32(sym.index))
	if i == 0 {
		return nil
	}
	if name := t.name(t.f.header.u32(t.raw[uint64(t.files[i-1])*t.entry:])); len(name) > 0 {
		return name
	}
	return nil
}

// listFiles finds the STT_FILE symbols.
func (t *symbols) listFiles() {
	t.filesListed = true
	info := t.f.header.pick(12, 4)
	for i := range uint64(len(t.raw)) / t.entry { // at most maxSymbols: fits an index
		if elf.SymType(t.raw[i*t.entry+uint64(info)]&15) == elf.STT_FILE {
			t.files = append(t.files, uint32(i))
		}
	}
	t.files = slices.Clip(t.files)
}

// primary returns the table that is asked first: .symtab, or .dynsym if that is missing or empty. A
// table that cannot be read is treated as missing: an address without a name is still an address.
func (f *File) primary() *symbols {
	t := &f.symbols
	if !t.loaded {
		t.f = f
		t.load(elf.SHT_SYMTAB)
		if len(t.raw) == 0 {
			t.load(elf.SHT_DYNSYM)
		}
	}
	return t
}

// secondary returns the .dynsym beside a .symtab, or a table without symbols.
func (f *File) secondary() *symbols {
	if f.dynamic == nil {
		f.dynamic = &symbols{f: f, loaded: true}
		if f.primary().kind == elf.SHT_SYMTAB {
			f.dynamic.load(elf.SHT_DYNSYM)
		}
	}
	return f.dynamic
}

// load loads the first table of this kind that has symbols.
func (t *symbols) load(kind elf.SectionType) {
	t.loaded = true
	for i := range t.f.sections {
		if s := &t.f.sections[i]; s.Type == kind && t.loadSection(i, s) {
			t.kind = kind
			return
		}
	}
}

// loadSection makes section s, at index i, the symbol table if it has a symbol besides the null
// one.
func (t *symbols) loadSection(index int, s *Section) bool {
	f := t.f
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
	t.raw, t.entry, t.strings = raw[:count*entry], entry, str
	for i := range f.sections {
		if x := &f.sections[i]; x.Type == elf.SHT_SYMTAB_SHNDX && x.Link == uint32(index) {
			if b, err := f.tableData(x); err == nil {
				t.sections = b
			}
			break
		}
	}
	return true
}

// tableData is Data for a section given by its header. Its name is not the key, since sections may
// share names.
func (f *File) tableData(s *Section) ([]byte, error) {
	key := s.Name
	if f.section(s.Name) != s {
		key = "\x00" + s.Name + "\x00" + string(binary.LittleEndian.AppendUint64(nil, s.Offset))
	}
	return f.sectionData(key, s, false)
}

// name returns the name at off of the string table, or nil.
func (t *symbols) name(off uint32) []byte {
	if uint64(off) >= uint64(len(t.strings)) {
		return nil
	}
	s := t.strings[off:]
	if end := bytes.IndexByte(s, 0); end >= 0 {
		return s[:end:end]
	}
	return nil // without an end in the table
}

// at decodes entry i. It does not check counts.
func (t *symbols) at(index uint64) (sym Symbol, name uint32, shndx uint16) {
	f := t.f
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
	sym.index, sym.table = index, t
	if f.hasModeBit() && sym.Type == elf.STT_FUNC {
		sym.Addr &^= 1
	}
	if f.placed {
		sym.Addr = t.placedAt(sym.Addr, index, shndx)
	}
	return sym, f.header.u32(b), shndx
}

// sectionIndex decodes the section of entry i alone.
func (t *symbols) sectionIndex(index uint64) (shndx uint16) {
	h := &t.f.header
	return h.u16(t.raw[index*t.entry+uint64(h.pick(14, 6)):])
}

// hasModeBit reports whether the lowest bit of a function's address selects its instruction set:
// Thumb, microMIPS.
func (f *File) hasModeBit() bool { return f.Machine == elf.EM_ARM || f.Machine == elf.EM_MIPS }

// section returns the section that an entry is defined in, or nil if the file lacks it; ok is false
// if the entry is not defined in a loaded section.
func (t *symbols) section(index uint64, shndx uint16) (s *Section, ok bool) {
	f := t.f
	n := uint64(shndx)
	switch i := elf.SectionIndex(shndx); {
	case i == elf.SHN_XINDEX:
		if x := t.sections; (index+1)*4 <= uint64(len(x)) {
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

// counts reports whether an entry names something that can cover an address.
func (t *symbols) counts(sym *Symbol, name uint32, shndx uint16) bool {
	switch sym.Type {
	case elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_OBJECT, elf.STT_GNU_IFUNC:
	default:
		return false
	}
	if sym.index == 0 {
		return false
	}
	if _, ok := t.section(sym.index, shndx); !ok {
		return false
	}
	if uint64(name) >= uint64(len(t.strings)) || t.strings[name] == 0 {
		return false
	}
	switch t.strings[name] {
	case '$':
		return !t.f.mappingSymbol(t.strings[name:])
	case '.': // a label that an assembler made for the difference of two
		return t.f.Machine != elf.EM_RISCV || !bytes.HasPrefix(t.strings[name:], []byte(".L0 "))
	}
	return true
}

// mappingSymbol reports whether the name at the front of b marks a change between code and data,
// for disassemblers: "$d" or "$d.anything" of the ABIs of Arm and RISC-V, where "$x" may be
// followed by the instruction set, "$xrv64gc". It reads only the first bytes, however long the name
// is.
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

// pass scans every entry for the best one at or below addr.
func (t *symbols) pass(addr uint64) (best Symbol, found bool) {
	consider := func(i uint64) {
		sym, name, shndx := t.at(i)
		if sym.Addr > addr || found && (sym.Addr < best.Addr || sym.Addr == best.Addr && !t.replaces(&sym, &best)) {
			return
		}
		if t.counts(&sym, name, shndx) {
			best, found = sym, true
		}
	}
	n := uint64(len(t.raw)) / t.entry
	if t.hasCommonLayout() {
		var room [16]uint64
		for _, i := range t.nearest64(addr, room[:0]) {
			consider(i)
		}
	}
	if !found { // seldom
		for i := uint64(1); i < n; i++ {
			consider(i)
		}
	}
	if found {
		t.setName(&best)
	}
	return best, found
}

// hasCommonLayout reports whether the addresses of symbols are little-endian 64-bit numbers in the
// entries, which are those of the file.
func (t *symbols) hasCommonLayout() bool {
	h := &t.f.header
	return h.is64 && !h.big && !t.f.hasModeBit() && !t.f.placed
}

// nearest64 appends the entries of any kind with the greatest address that is not above addr, or
// none if there is not room for all. It is for the common layout, and scans 5 GB/s.
func (t *symbols) nearest64(addr uint64, at []uint64) []uint64 {
	top, more := uint64(0), false // the address, not above addr; whether there are more than fit
	for i, b := uint64(1), t.raw[min(symSize64, len(t.raw)):]; len(b) >= symSize64; i, b = i+1, b[symSize64:] {
		v := binary.LittleEndian.Uint64(b[8:16])
		if v-top > addr-top { // above addr or below top
			continue
		}
		if v > top {
			top, at, more = v, at[:0], false
		}
		if more = more || len(at) == cap(at); !more {
			at = append(at, i)
		}
	}
	if more {
		return nil
	}
	return at
}

func (t *symbols) setName(sym *Symbol) {
	sym.Name = t.name(t.f.header.u32(t.raw[sym.index*t.entry:]))
}

// makeSorted builds the sorted table, unless that was done before.
func (t *symbols) makeSorted() {
	if t.sorted == nil && t.shared != nil {
		if s := t.shared.sort(); s != nil {
			t.sorted = s.sorted
		}
	}
	if t.sorted == nil {
		t.sort()
	}
}

// sort builds the sorted table.
func (t *symbols) sort() {
	n := uint64(len(t.raw)) / t.entry // at most maxSymbols: fits an index
	all := make([]symbolEntry, 0, n)
	for i := uint64(1); i < n; i++ {
		sym, name, shndx := t.at(i)
		if t.counts(&sym, name, shndx) {
			all = append(all, symbolEntry{sym.Addr, uint32(i)})
		}
	}
	sortByAddr(all)
	// Of the symbols at one address one stays.
	kept := all[:0]
	for _, e := range all {
		if last := len(kept) - 1; last >= 0 && kept[last].addr == e.addr {
			sym, _, _ := t.at(uint64(e.index))
			other, _, _ := t.at(uint64(kept[last].index))
			if t.replaces(&sym, &other) {
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

// replaces reports whether sym is preferred to other, which has the same address and is before it in the
// table.
func (t *symbols) replaces(sym, other *Symbol) bool {
	if sym.Size != other.Size || t.f.room.LastAlias {
		return sym.Size >= other.Size
	}
	return !t.isInternal(sym) || t.isInternal(other)
}

// isInternal reports whether the name of sym is one by which glibc calls its own functions: people know
// __GI___clone3 as clone3. It reads only the first bytes of the name.
func (t *symbols) isInternal(sym *Symbol) bool {
	name := t.strings[min(uint64(t.f.header.u32(t.raw[sym.index*t.entry:])), uint64(len(t.strings))):]
	return bytes.HasPrefix(name, []byte("__GI_"))
}

// search finds the best symbol at or below addr in the sorted table.
func (t *symbols) search(addr uint64) (Symbol, bool) {
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
	sym, _, _ := t.at(uint64(t.sorted[lo-1].index))
	t.setName(&sym)
	return sym, true
}

// covers reports whether addr, at or above the symbol's address, belongs to it.
func (t *symbols) covers(sym *Symbol, addr uint64) bool {
	if len(sym.Name) == 0 {
		return false
	}
	if sym.Size != 0 {
		return addr-sym.Addr < sym.Size
	}
	s, _ := t.section(sym.index, t.sectionIndex(sym.index))
	if s == nil {
		return true
	}
	end := uint64(math.MaxUint64)
	if s.Size <= end-s.Addr {
		end = s.Addr + s.Size
	}
	return addr < end || addr == sym.Addr
}
