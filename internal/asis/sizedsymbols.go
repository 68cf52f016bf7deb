package asis

import (
	"cmp"
	"debug/elf"
	"math/bits"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// A sizedSymbol is a symbol that elfutils considers when it looks up an address.
type sizedSymbol struct {
	addr, size uint64
	index      uint32 // index in the table
	section    int32
	rank       int8 // rank of the binding: the higher rank wins
	name       []byte
}

// end returns the address after the symbol, or the highest address if that overflows.
func (s *sizedSymbol) end() uint64 {
	end, carry := bits.Add64(s.addr, s.size, 0)
	if carry != 0 {
		return 1<<64 - 1
	}
	return end
}

// sizedSymbols are symbols sorted by address. ends[i] is the greatest address at which a symbol in
// list[:i+1] ends.
type sizedSymbols struct {
	list []sizedSymbol
	ends []uint64
}

// A coverTable has a file's symbols, for lookups by the rules of elfutils.
type coverTable struct {
	loaded          bool
	full            bool // the table is .symtab
	globals, locals sizedSymbols
	absent          []sizedSymbol          // undefined symbols
	first           map[string]sizedSymbol // first symbol of each name; nil before symbolNamed
}

// hasTable reports whether the file has a full symbol table.
func (v *view) hasTable() bool {
	v.loadCovers()
	return v.covers.full
}

// loadCovers reads the symbols: .symtab, or .dynsym if .symtab is missing or empty.
func (v *view) loadCovers() {
	t := &v.covers
	if t.loaded {
		return
	}
	t.loaded = true
	if t.full = v.readCovers(elf.SHT_SYMTAB); !t.full {
		v.readCovers(elf.SHT_DYNSYM)
	}
	t.globals.sort()
	t.locals.sort()
}

// readCovers reads a table, and reports whether it has symbols.
func (v *view) readCovers(kind elf.SectionType) bool {
	firstGlobal, t := uint64(0), &v.covers
	if i := slices.IndexFunc(v.sections, func(s object.Section) bool { return s.Type == kind }); i >= 0 {
		firstGlobal = uint64(v.sections[i].Info)
	}
	locals, globals := 0, 0 // upper bounds: lists with enough capacity are not copied while they grow
	for e := range v.file.TableEntries(kind) {
		if e.Index < firstGlobal {
			locals++
		} else {
			globals++
		}
	}
	t.locals.list, t.globals.list = make([]sizedSymbol, 0, min(locals, maxViewed)), make([]sizedSymbol, 0, min(globals, maxViewed))
	count := 0
	for e := range v.file.TableEntries(kind) {
		if count++; count > maxViewed {
			break
		}
		if len(e.Name) == 0 || e.Type == elf.STT_SECTION || e.Type == elf.STT_FILE || e.Type == elf.STT_TLS {
			continue
		}
		s := sizedSymbol{addr: e.Addr, size: e.Size, index: uint32(e.Index), section: int32(e.Section), rank: rankOf(e.Bind), name: e.Name}
		switch {
		case e.Section == 0:
			t.absent = append(t.absent, s)
		case e.Index < firstGlobal:
			t.locals.list = append(t.locals.list, s)
		default:
			t.globals.list = append(t.globals.list, s)
		}
	}
	return count > 0
}

func rankOf(b elf.SymBind) int8 {
	switch b {
	case elf.STB_GLOBAL:
		return 3
	case elf.STB_WEAK:
		return 2
	case elf.STB_LOCAL:
		return 1
	}
	return 0
}

func (t *sizedSymbols) sort() {
	slices.SortFunc(t.list, func(a, b sizedSymbol) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return cmp.Compare(a.index, b.index)
	})
	t.ends = make([]uint64, len(t.list))
	end := uint64(0)
	for i := range t.list {
		end = max(end, t.list[i].end())
		t.ends[i] = end
	}
}

// upTo returns the number of symbols at or before addr.
func (t *sizedSymbols) upTo(addr uint64) int {
	n, _ := slices.BinarySearchFunc(t.list, addr, func(s sizedSymbol, addr uint64) int {
		if s.addr > addr {
			return 1
		}
		return -1
	})
	return n
}

// maxLooks bounds the symbols that a lookup examines, which takes about 0.1 ms. A lookup inside a
// large symbol examines all symbols in it.
const maxLooks = 1 << 16

// sized returns the symbol that elfutils prefers among the symbols whose sizes cover addr; nil if
// there is none.
func (t *sizedSymbols) sized(addr uint64) (best *sizedSymbol) {
	var all []*sizedSymbol
	for i, looks := t.upTo(addr)-1, maxLooks; i >= 0 && t.ends[i] > addr && looks > 0 && len(all) < maxInner; i-- {
		looks--
		if s := &t.list[i]; s.size != 0 && addr-s.addr < s.size {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *sizedSymbol) int { return cmp.Compare(a.index, b.index) })
	for _, s := range all {
		switch {
		case best == nil, s.addr > best.addr, s.rank > best.rank,
			s.addr == best.addr && s.size < best.size && s.rank >= best.rank:
			best = s
		}
	}
	return best
}

// sizeless returns the last symbol at addr that has no size. Unless addr is pc, the symbol must be
// in section, the section of pc.
func (t *sizedSymbols) sizeless(addr, pc uint64, section int) *sizedSymbol {
	for i, looks := t.upTo(addr)-1, maxLooks; i >= 0 && t.list[i].addr == addr && looks > 0; i-- {
		looks--
		if s := &t.list[i]; s.size == 0 && (addr == pc || int(s.section) == section) {
			return s
		}
	}
	return nil
}

// end returns the greatest end of the symbols at or before addr; 0 without such symbols.
func (t *sizedSymbols) end(addr uint64) uint64 {
	if n := t.upTo(addr); n > 0 {
		return t.ends[n-1]
	}
	return 0
}

// covering returns the symbol that elfutils reports for addr, or nil. It prefers a global symbol
// whose size covers addr. Next are a global symbol without a size at addr, and a local symbol whose
// size covers addr. Otherwise covering returns the nearest symbol without a size at or before addr,
// unless another symbol before addr ends after that symbol's address.
func (v *view) covering(addr uint64) *sizedSymbol {
	v.loadCovers()
	t, section := &v.covers, v.sectionAt(addr)
	if best := t.globals.sized(addr); best != nil {
		return best
	}
	end := t.globals.end(addr)
	if t.globals.sizeless(addr, addr, section) == nil || end > addr {
		if best := t.locals.sized(addr); best != nil {
			return best
		}
		end = max(end, t.locals.end(addr))
		if label := t.locals.sizeless(end, addr, section); label != nil && end <= addr {
			return label
		}
	}
	if end > addr {
		return nil
	}
	return t.globals.sizeless(end, addr, section)
}

// symbolNamed returns the first symbol with a name, in the table's order; nil if there is none.
func (v *view) symbolNamed(name string) *sizedSymbol {
	v.loadCovers()
	t := &v.covers
	if t.first == nil {
		t.first = make(map[string]sizedSymbol)
		for _, all := range [][]sizedSymbol{t.absent, t.globals.list, t.locals.list} {
			for _, s := range all {
				if old, ok := t.first[string(s.name)]; !ok || s.index < old.index {
					t.first[string(s.name)] = s
				}
			}
		}
	}
	if s, ok := t.first[name]; ok {
		return &s
	}
	return nil
}

// sectionAt returns the index of the section at addr; 0 if there is none.
func (v *view) sectionAt(addr uint64) int {
	for i := range v.sections {
		if s := &v.sections[i]; i > 0 && s.Flags&elf.SHF_ALLOC != 0 && addr >= s.Addr && addr-s.Addr < s.Size {
			return i
		}
	}
	return 0
}

// sectionUpTo is like sectionAt, but also accepts the address just after a section, if no other
// section has it.
func (v *view) sectionUpTo(addr uint64) int {
	if i := v.sectionAt(addr); i > 0 {
		return i
	}
	return max(0, slices.IndexFunc(v.sections, func(s object.Section) bool {
		return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Addr+s.Size == addr
	}))
}
