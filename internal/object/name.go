package object

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"unsafe"
)

// A nameTable finds the symbols with a name. The first linearNames searches scan the symbol table;
// later ones use a table of hashes.
type nameTable struct {
	searches int
	built    bool
	hostile  bool // names overlap: no table of hashes is made
	seed     maphash.Seed
	symbols  []nameHash // by index in the symbol table
	first    []uint32   // by bucket: index of its first symbol; 0 if it has none
	shift    uint       // number of low bits of a hash that do not select the bucket
}

// A nameHash is the hash of a symbol's name. next is the index of the bucket's next symbol; 0 for
// none.
type nameHash struct{ hash, next uint32 }

func (n *nameTable) footprint() int64 {
	return int64(cap(n.symbols))*int64(unsafe.Sizeof(nameHash{})) + int64(cap(n.first))*int64(unsafe.Sizeof(n.first[0]))
}

// SymbolsNamed returns the functions, objects and untyped symbols with a name that are defined in
// loaded sections, from .symtab, .dynsym and MiniDebugInfo. They are in order of address, one for
// each address, at most 4,096. The name must match exactly, with a version if the table has one
// (memcpy@@GLIBC_2.14). The first searches scan the tables (1 ms for 130,000 symbols). Later ones
// use a list of 10 bytes a symbol, built once.
func (ts *symbolTables) SymbolsNamed(name string) []Symbol {
	if ts.closed || name == "" {
		return nil
	}
	all := ts.secondary().named(ts.primary().named(nil, name), name)
	if m, _ := ts.Mini(); m != nil {
		all = m.primary().named(all, name)
	}
	slices.SortStableFunc(all, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return slices.CompactFunc(all, func(a, b Symbol) bool { return a.Addr == b.Addr })
}

// SearchCost returns the cost of unpacking, scanning or listing tables in the next call of
// SymbolsNamed, in steps of about 50 ns. It is 0 after all tables are listed.
func (ts *symbolTables) SearchCost() int {
	if ts.closed {
		return 0
	}
	cost := ts.primary().searchCost() + ts.secondary().searchCost()
	switch s := ts.section(miniSection); {
	case ts.mini.file != nil:
		cost += ts.mini.file.primary().searchCost()
	case s != nil && !ts.mini.tried:
		cost += 2 * int(min(s.Size, maxMini)) // 10 MB/s of compressed bytes
	}
	return cost
}

func (t *symbols) searchCost() int {
	if len(t.raw) == 0 {
		return 0
	}
	n := &t.rarely().names
	count := int(t.count())
	switch {
	case n.built:
		return 0
	case n.hostile || n.searches < linearNames:
		return count / 4
	default:
		return 2 * count
	}
}

func (t *symbols) named(dst []Symbol, name string) []Symbol {
	if len(t.raw) == 0 || len(name) >= len(t.strings) {
		return dst
	}
	count := t.count()
	n := &t.rarely().names
	if n.searches++; n.searches > linearNames {
		t.hashNames()
	}
	if !n.built {
		for i := uint64(1); i < count; i++ {
			end := uint64(t.d.u32(t.raw[i*t.entry:])) + uint64(len(name))
			if end < uint64(len(t.strings)) && t.strings[end] == 0 { // one symbol in 20 passes
				dst = t.ifNamed(dst, i, name)
			}
		}
		return dst
	}
	h := uint32(maphash.String(n.seed, name))
	for i := n.first[h>>n.shift]; i != 0; i = n.symbols[i].next {
		if n.symbols[i].hash == h {
			dst = t.ifNamed(dst, uint64(i), name)
		}
	}
	return dst
}

// ifNamed appends the symbol at index if it has this name and can cover an address.
func (t *symbols) ifNamed(dst []Symbol, index uint64, name string) []Symbol {
	off := uint64(t.d.u32(t.raw[index*t.entry:]))
	end := off + uint64(len(name))
	if len(dst) >= maxNamed || end >= uint64(len(t.strings)) || t.strings[end] != 0 || string(t.strings[off:end]) != name {
		return dst
	}
	sym, at, shndx := t.at(index)
	if !t.counts(&sym, at, shndx) {
		return dst
	}
	sym.Name = t.name(at)
	return append(dst, sym)
}

// hashNames builds the table of hashes. It begins with the last symbol: the symbols of a bucket are
// then in the order of the symbol table.
func (t *symbols) hashNames() {
	n := &t.rarely().names
	if n.built || n.hostile {
		return
	}
	n.built, n.seed = true, maphash.MakeSeed()
	budget := 2*len(t.strings) + maxNamesHashed // names may share suffixes
	count := t.count()
	n.shift = uint(32 - bits.Len(uint(count)/2)) // about two symbols for each bucket
	n.symbols, n.first = make([]nameHash, count), make([]uint32, 1<<(32-n.shift))
	for i := count - 1; i > 0; i-- {
		off := uint64(t.d.u32(t.raw[i*t.entry:]))
		if off >= uint64(len(t.strings)) {
			continue
		}
		b := t.strings[off:]
		b = b[:min(len(b), maxNameHashed)]
		end := bytes.IndexByte(b, 0)
		if budget -= max(end, 0) + 1; end < 0 {
			budget -= len(b)
		}
		if budget < 0 {
			*n = nameTable{searches: n.searches, hostile: true}
			return
		}
		if end <= 0 {
			continue // no name, or a name that is too long to be searched for
		}
		h := uint32(maphash.Bytes(n.seed, b[:end]))
		bucket := &n.first[h>>n.shift]
		n.symbols[i] = nameHash{h, *bucket}
		*bucket = uint32(i)
	}
}
