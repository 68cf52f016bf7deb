package object

import (
	"debug/elf"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// A Symbol is an entry of the symbol table.
type Symbol struct {
	Name  []byte // aliases the file, valid until Close; empty only from Symbols
	Addr  uint64 // link-time address, without the Thumb bit
	Size  uint64 // bytes; 0: not known
	Type  elf.SymType
	Local bool

	index uint64   // index in table
	table *symbols // the symbol table that has the symbol
}

// symbols is a symbol table of a file: its raw bytes and, after enough lookups, the sorted
// addresses.
type symbols struct {
	rawSymbols

	lookups, passed uint64        // lookups that scanned the table, and symbols scanned
	sorted          []symbolEntry // one for each address, by address; nil until built
	shared          *SymbolTable  // set by SymbolTable; nil before its first call

	rare *rareTables // nil until one of its tables is needed
}

// rareTables are tables that lookups of code do not need. They are allocated separately: a program
// may have thousands of small modules, each with one or two symbol tables.
type rareTables struct {
	names nameTable
	words wordTable
	next  nextTable

	filesListed bool
	files       []uint32 // indices of the STT_FILE symbols, in order
}

// rarely returns the table's rareTables.
func (t *symbols) rarely() *rareTables {
	if t.rare == nil {
		t.rare = new(rareTables)
	}
	return t.rare
}

func (r *rareTables) footprint() int64 {
	if r == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*r)) + int64(cap(r.files))*int64(unsafe.Sizeof(r.files[0])) + r.names.footprint() + r.words.footprint() + r.next.footprint()
}

// A symbolEntry is a symbol in the sorted table. Its size and name are read from the raw entry.
type symbolEntry struct {
	addr  uint64
	index uint32
}

// footprint returns the number of heap bytes of the tables that lookups have built. It leaves out
// the sections, which sectionData.footprint counts.
func (t *symbols) footprint() int64 {
	if t == nil {
		return 0
	}
	sorted := t.sorted
	if t.shared != nil && sorted == nil {
		sorted = t.shared.ready()
	}
	return int64(cap(sorted))*int64(unsafe.Sizeof(symbolEntry{})) + t.rare.footprint()
}

// covering returns the nearest symbol at or below addr, if it covers addr.
func (t *symbols) covering(addr uint64) (Symbol, bool) {
	sym, found := t.nearest(addr)
	if !found || !t.covers(&sym, addr) {
		return Symbol{}, false
	}
	return sym, true
}

// nearest returns the nearest symbol at or below addr, even if it does not cover addr.
func (t *symbols) nearest(addr uint64) (sym Symbol, found bool) {
	if len(t.raw) == 0 {
		return Symbol{}, false
	}
	if t.sorted == nil && t.shared != nil {
		t.sorted = t.shared.ready()
	}
	if t.sorted == nil && t.lookups < linearLookups && t.passed < linearSymbols {
		t.lookups++
		t.passed += t.count()
		return t.pass(addr)
	}
	t.makeSorted()
	return t.search(addr)
}

// fileSymbols returns the indices of the STT_FILE symbols, in order.
func (t *symbols) fileSymbols() []uint32 {
	r := t.rarely()
	if r.filesListed {
		return r.files
	}
	r.filesListed = true
	info := t.d.pick(12, 4)
	for i := range t.count() {
		if elf.SymType(t.raw[i*t.entry+uint64(info)]&15) == elf.STT_FILE {
			r.files = append(r.files, uint32(i))
		}
	}
	r.files = slices.Clip(r.files)
	return r.files
}

// at decodes the entry at index, even if the method counts rejects the entry. It returns the symbol
// without its name, the offset of the name, and the section index.
func (t *symbols) at(index uint64) (sym Symbol, name uint32, shndx uint16) {
	d := t.d
	b := t.raw[index*t.entry:]
	b = b[:t.entry]
	var info byte
	if d.is64 {
		info, shndx = b[4], d.u16(b[6:])
		sym.Addr, sym.Size = d.u64(b[8:]), d.u64(b[16:])
	} else {
		info, shndx = b[12], d.u16(b[14:])
		sym.Addr, sym.Size = uint64(d.u32(b[4:])), uint64(d.u32(b[8:]))
	}
	sym.Type = elf.SymType(info & 15)
	sym.Local = elf.SymBind(info>>4) == elf.STB_LOCAL
	sym.index, sym.table = index, t
	if d.hasModeBit() && sym.Type == elf.STT_FUNC {
		sym.Addr &^= 1
	}
	if d.placed {
		sym.Addr = t.placedAt(sym.Addr, index, shndx)
	}
	return sym, d.u32(b), shndx
}

// pass scans every entry for the best symbol at or below addr.
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
	n := t.count()
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

// nearest64 appends the indexes of entries to the slice at: all entries, of any kind, with the
// greatest address not above addr. It returns nil if the slice has too little capacity. It reads
// only the common layout (64 bits, little-endian), and scans 5 GB/s.
func (t *symbols) nearest64(addr uint64, at []uint64) []uint64 {
	top, more := uint64(0), false // greatest address so far; whether the slice at is too small
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
	sym.Name = t.name(t.d.u32(t.raw[sym.index*t.entry:]))
}

// makeSorted builds the sorted table once.
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

func (t *symbols) sort() {
	n := t.count()
	all := make([]symbolEntry, 0, n)
	for i := uint64(1); i < n; i++ {
		sym, name, shndx := t.at(i)
		if t.counts(&sym, name, shndx) {
			all = append(all, symbolEntry{sym.Addr, uint32(i)})
		}
	}
	sortByAddr(all)
	// one of the symbols at each address is kept
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

// search finds the best symbol at or below addr in the sorted table.
func (t *symbols) search(addr uint64) (Symbol, bool) {
	lo, hi := 0, len(t.sorted) // the first entry above addr is in [lo, hi]
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
