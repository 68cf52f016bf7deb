package asis

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// A view has the sections and symbols of an ELF file, for lookups by the rules of BFD or elfutils.
// A nil view has no symbols.
type view struct {
	closer   *buildid.File
	file     *object.File
	sections []object.Section
	digits   int  // digits of an address
	signed   bool // addresses of 32 bits are sign-extended

	loaded    bool
	functions [][]funcSymbol // functions by section, in the order of their offsets and of the table
	others    [][]uint64     // offsets of symbols in the sections without code
	covers    coverTable
	byName    map[string]uint64
	byShown   map[string]uint64 // addresses by demangled name
}

// A funcSymbol is a symbol that BFD treats as a function.
type funcSymbol struct {
	off, size uint64 // in its section; size is at least 1
	index     uint32 // index in the table
	name      []byte // aliases the file
	file      []byte // source file from an STT_FILE symbol; nil: not known to BFD
}

// maxViewed bounds the symbols that are read from a table. The largest programs have a few million.
const maxViewed = 1 << 23

func openView(path string) (*view, error) {
	f, err := buildid.OpenRegular(path, "the question")
	if err != nil {
		return nil, err
	}
	obj, err := object.Open(f, f.Size(), f.OS())
	if err != nil {
		f.Close()
		return nil, err
	}
	v := &view{closer: f, file: obj, sections: obj.Sections(), digits: 16}
	if obj.Class == elf.ELFCLASS32 {
		v.digits, v.signed = 8, obj.Machine == elf.EM_MIPS
	}
	return v, nil
}

func (v *view) close() {
	if v != nil {
		v.file.Close()
		v.closer.Close()
	}
}

// named returns the index of the first section with a name; 0 if there is none.
func (v *view) named(name string) int {
	return max(0, slices.IndexFunc(v.sections, func(s object.Section) bool { return s.Name == name }))
}

// base returns the address of a section; 0 in a file that was not linked.
func (v *view) base(s *object.Section) uint64 {
	if v.file.Type == elf.ET_REL {
		return 0
	}
	return s.Addr
}

// hasSame reports whether the section at index has the same name in v and other.
func (v *view) hasSame(other *view, index int) bool {
	return index < len(v.sections) && v.sections[index].Name == other.sections[index].Name
}

// load reads the symbols: .symtab, or .dynsym if .symtab is missing or empty.
func (v *view) load() {
	if v.loaded {
		return
	}
	v.loaded = true
	v.functions = make([][]funcSymbol, len(v.sections))
	v.others = make([][]uint64, len(v.sections))
	if v.read(elf.SHT_SYMTAB) == 0 {
		v.read(elf.SHT_DYNSYM)
	}
	for i := range v.functions {
		slices.SortFunc(v.functions[i], func(a, b funcSymbol) int {
			return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.index, b.index))
		})
		slices.Sort(v.others[i])
	}
}

// read reads a table, and returns the number of its symbols.
func (v *view) read(kind elf.SectionType) (count int) {
	var file []byte
	seen, mixed := false, false // seen: a symbol was read; mixed: a file was read after a symbol
	for e := range v.file.TableEntries(kind) {
		if count++; count > maxViewed {
			break
		}
		if e.Type == elf.STT_FILE {
			file, mixed = e.Name, seen
			if file == nil {
				file = []byte{}
			}
			continue
		}
		seen = true
		if e.Section == 0 || e.Type == elf.STT_SECTION {
			continue
		}
		s := &v.sections[e.Section]
		off := e.Addr - s.Addr
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			v.others[e.Section] = append(v.others[e.Section], off)
		}
		if !isFunction(&e) {
			continue
		}
		f := funcSymbol{off: off, size: max(1, e.Size), index: uint32(e.Index), name: e.Name}
		if file != nil && (e.Bind == elf.STB_LOCAL || !mixed) {
			f.file = file
		}
		v.functions[e.Section] = append(v.functions[e.Section], f)
	}
	return count
}

// isFunction reports whether BFD treats a symbol as a function: it is not data, and not a hidden
// local label without a size.
func isFunction(e *object.TableEntry) bool {
	switch e.Type {
	case elf.STT_OBJECT, elf.STT_COMMON, elf.STT_TLS, 8, 9: // 8 and 9 are STT_RELC and STT_SRELC
		return false
	case elf.STT_NOTYPE:
		return e.Size > 0 || e.Bind != elf.STB_LOCAL || !e.Hidden
	}
	return true
}

// exact reports whether a section without code has a symbol at exactly the given offset.
func (v *view) exact(section int, off uint64) bool {
	v.load()
	_, found := slices.BinarySearch(v.others[section], off)
	return found
}

// find returns the address of the first symbol with a name, or else of the first symbol with that
// demangled name.
func (v *view) find(name string, demangle func(name string) string) (addr uint64, ok bool) {
	if v.byName == nil {
		v.byName = make(map[string]uint64)
		v.eachSymbol(func(name string, addr uint64) { keepFirst(v.byName, name, addr) })
	}
	if addr, ok := v.byName[name]; ok {
		return addr, true
	}
	if v.byShown == nil {
		v.byShown = make(map[string]uint64)
		v.eachSymbol(func(name string, addr uint64) { keepFirst(v.byShown, demangle(name), addr) })
	}
	addr, ok = v.byShown[name]
	return addr, ok
}

// eachSymbol calls visit for each symbol of the table that load reads. A section's symbol has the
// section's name.
func (v *view) eachSymbol(visit func(name string, addr uint64)) {
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		count := 0
		for e := range v.file.TableEntries(kind) {
			if count++; count > maxViewed {
				break
			}
			name := string(e.Name)
			if e.Type == elf.STT_SECTION && e.Section > 0 {
				name = v.sections[e.Section].Name
			}
			visit(name, e.Addr)
		}
		if count > 0 {
			return
		}
	}
}

func keepFirst(m map[string]uint64, name string, addr uint64) {
	if _, ok := m[name]; !ok {
		m[name] = addr
	}
}

// A lastSymbol is the result of the last lookup. As in BFD, [binutils.symbol] returns it again if
// the next offset is in the same section, and less than size bytes after the symbol's start.
type lastSymbol struct {
	view    *view
	section int
	sym     *funcSymbol
	size    uint64
}

// symbol returns BFD's function symbol for an offset: the last one at or before off, even if its
// size does not reach off. As in BFD, the result depends on the last answer: see lastSymbol.
func (b *binutils) symbol(v *view, section int, off uint64) *funcSymbol {
	v.load()
	c := &b.last
	if c.view != v || c.section != section || c.sym == nil || off < c.sym.off || off-c.sym.off >= c.size {
		*c = lastSymbol{view: v, section: section}
		c.sym, c.size = nearest(v.functions[section], off)
	}
	return c.sym
}

// nearest returns the last symbol at or before off, the largest if several share an address. size
// is the symbol's size, or less if a later symbol of the table begins inside it, after off.
func nearest(all []funcSymbol, off uint64) (best *funcSymbol, size uint64) {
	end, _ := slices.BinarySearchFunc(all, off, func(s funcSymbol, off uint64) int {
		if s.off > off {
			return 1
		}
		return -1
	})
	if end == 0 {
		return nil, 0
	}
	start := end - 1
	for start > 0 && end-start < maxInner && all[start-1].off == all[end-1].off {
		start--
	}
	looks := maxInner
	for i := start; i < end; i++ {
		s := &all[i]
		if best == nil || s.size > size {
			best, size = s, s.size
			// in BFD, a symbol's size ends at the first symbol inside it that is later in the table
			for k := end; k < len(all) && looks > 0 && all[k].off-s.off < s.size; k++ {
				if looks--; all[k].index > s.index {
					size = all[k].off - s.off
					break
				}
			}
		}
	}
	return best, size
}

// maxInner bounds the symbols that a lookup examines at one address, around it, or inside another
// symbol. Programs have a few hundred.
const maxInner = 4096
