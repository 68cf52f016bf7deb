package object

import (
	"bytes"
	"debug/elf"
	"strings"
)

// rawSymbols are the entries of a symbol table in the file.
type rawSymbols struct {
	d        *sectionData
	loaded   bool
	kind     elf.SectionType
	raw      []byte // whole entries
	entry    uint64 // bytes of an entry
	strings  []byte
	sections []byte // SHT_SYMTAB_SHNDX: section indices that do not fit an entry; often nil
}

// count returns the number of entries, at most maxSymbols.
func (t *rawSymbols) count() uint64 {
	if t.entry == 0 {
		return 0
	}
	return uint64(len(t.raw)) / t.entry
}

// load loads the first symbol table of this kind that has symbols.
func (t *rawSymbols) load(kind elf.SectionType) {
	t.loaded = true
	for i := range t.d.sections {
		if s := &t.d.sections[i]; s.Type == kind && t.loadSection(i, s) {
			t.kind = kind
			return
		}
	}
}

// loadSection makes s, the section at index, the symbol table. It returns false if s has no symbol
// besides the null symbol, or cannot be read.
func (t *rawSymbols) loadSection(index int, s *Section) bool {
	d := t.d
	entry := uint64(d.pick(symSize32, symSize64))
	if s.Size < 2*entry || uint64(s.Link) >= uint64(len(d.sections)) || s.Link == uint32(elf.SHN_UNDEF) {
		return false
	}
	names := &d.sections[s.Link]
	if names.Type != elf.SHT_STRTAB {
		return false
	}
	raw, err := d.tableData(s)
	if err != nil || uint64(len(raw)) < 2*entry {
		return false
	}
	str, err := d.tableData(names)
	if err != nil {
		return false
	}
	count := min(uint64(len(raw))/entry, maxSymbols)
	t.raw, t.entry, t.strings = raw[:count*entry], entry, str
	for i := range d.sections {
		if x := &d.sections[i]; x.Type == elf.SHT_SYMTAB_SHNDX && x.Link == uint32(index) {
			if b, err := d.tableData(x); err == nil {
				t.sections = b
			}
			break
		}
	}
	return true
}

// name returns the name at off of the string table; nil if the name reaches beyond the table.
func (t *rawSymbols) name(off uint32) []byte {
	if uint64(off) >= uint64(len(t.strings)) {
		return nil
	}
	s := t.strings[off:]
	if end := bytes.IndexByte(s, 0); end >= 0 {
		return s[:end:end]
	}
	return nil // without an end in the table
}

// sectionIndex decodes only the section index of an entry.
func (t *rawSymbols) sectionIndex(index uint64) (shndx uint16) {
	h := &t.d.header
	return h.u16(t.raw[index*t.entry+uint64(h.pick(14, 6)):])
}

// section returns the section of an entry, and whether the section is loaded. It returns nil, true
// if the entry has an extended index (SHN_XINDEX) but the file has no table of such indexes. It
// returns nil, false for other entries without a section.
func (t *rawSymbols) section(index uint64, shndx uint16) (s *Section, ok bool) {
	d := t.d
	n := uint64(shndx)
	switch i := elf.SectionIndex(shndx); {
	case i == elf.SHN_XINDEX:
		if x := t.sections; (index+1)*4 <= uint64(len(x)) {
			n = uint64(d.u32(x[index*4:]))
			break
		}
		return nil, true
	case i == elf.SHN_UNDEF || i >= elf.SHN_LORESERVE:
		return nil, false
	}
	if n >= uint64(len(d.sections)) {
		return nil, false
	}
	s = &d.sections[n]
	return s, s.Flags&elf.SHF_ALLOC != 0
}

// placedAt returns the address of the symbol at index after placeSections. addr is its address in
// the file, and shndx its section index there.
func (t *rawSymbols) placedAt(addr, index uint64, shndx uint16) uint64 {
	if s, _ := t.section(index, shndx); s != nil && s.Flags&elf.SHF_EXECINSTR != 0 {
		return s.Addr + addr
	}
	return addr
}

// hasCommonLayout reports whether the entries' addresses are little-endian 64-bit numbers that can
// be used unchanged.
func (t *rawSymbols) hasCommonLayout() bool {
	h := &t.d.header
	return h.is64 && !h.big && !t.d.hasModeBit() && !t.d.placed
}

// counts reports whether an entry can cover an address.
func (t *rawSymbols) counts(sym *Symbol, name uint32, shndx uint16) bool {
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
		return !t.d.mappingSymbol(t.strings[name:])
	case '.': // a label that an assembler made for the difference of two addresses
		return t.d.Machine != elf.EM_RISCV || !bytes.HasPrefix(t.strings[name:], []byte(".L0 "))
	}
	return true
}

// mappingSymbol reports whether the name at the front of b marks a change between code and data,
// for disassemblers. The ABIs of Arm and RISC-V have "$d" and "$d.anything"; on RISC-V the
// instruction set may follow "$x", as in "$xrv64gc". It reads only the first bytes of a long name.
func (h *headers) mappingSymbol(b []byte) bool {
	var kinds string
	switch h.Machine {
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
	return b[2] == 0 || b[2] == '.' || h.Machine == elf.EM_RISCV && bytes.HasPrefix(b, []byte("$xrv"))
}

// replaces reports whether sym is preferred to other, an earlier symbol of the table with the same
// address.
func (t *rawSymbols) replaces(sym, other *Symbol) bool {
	if sym.Size != other.Size || t.d.room.LastAlias {
		return sym.Size >= other.Size
	}
	return !t.isInternal(sym) || t.isInternal(other)
}

// isInternal reports whether sym has a name that only glibc itself uses, such as __GI___clone3 for
// clone3. It reads only the first bytes of the name.
func (t *rawSymbols) isInternal(sym *Symbol) bool {
	name := t.strings[min(uint64(t.d.u32(t.raw[sym.index*t.entry:])), uint64(len(t.strings))):]
	return bytes.HasPrefix(name, []byte("__GI_"))
}
