package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// In object files (ET_REL), which were not linked, the addresses in debug sections, and the
// references between these, are relocations. As in llvm-symbolizer they are applied as if the
// linker had put every section at its header's address, which is 0.

// relocates reports whether s, found by name, needs relocations applied.
func (f *File) relocates(name string, s *Section) bool {
	return f.Type == elf.ET_REL && strings.HasPrefix(name, ".debug_") && s.Flags&elf.SHF_ALLOC == 0 && f.relocations(s) != nil
}

// relocations returns the first section of relocations for s, or nil. Compilers write one.
func (f *File) relocations(s *Section) *Section {
	return f.relocs[s]
}

// relocated returns a copy of the bytes of s with relocations applied. It skips relocations of
// unknown kinds, without a symbol, or outside of the section.
func (f *File) relocated(s *Section, legacy bool) (k kept) {
	if !within(s.Offset, s.Size, f.size) {
		return kept{err: &FormatError{"section", fmt.Sprintf("%d bytes at %#x reach beyond the end of the file (%d bytes)", s.Size, s.Offset, f.size)}}
	}
	if legacy || s.Flags&elf.SHF_COMPRESSED != 0 {
		k = f.inflate(s, legacy, false)
	} else {
		k = f.read(s)
	}
	if k.err != nil {
		return k
	}
	r := f.relocations(s)
	k.err = f.eachRelocation(r, func(x *fieldRelocation) {
		how := relocationOf(f.Machine, x.kind)
		if how.bytes != 0 && within(x.off, uint64(how.bytes), uint64(len(k.data))) {
			f.apply(k.data[x.off:x.off+uint64(how.bytes)], how, r.Type == elf.SHT_REL, x.value, x.addend, s.Addr+x.off)
		}
	})
	if k.err != nil {
		k.data = nil
	}
	return k
}

// A fieldRelocation is one entry of a section of relocations.
type fieldRelocation struct {
	off, kind uint64
	addend    uint64
	value     uint64 // address of the symbol
	section   int    // index of the section that the symbol is in; 0: none
}

// eachRelocation calls do with each entry of r whose symbol exists.
func (f *File) eachRelocation(r *Section, do func(*fieldRelocation)) error {
	raw, release, err := f.once(r)
	defer release()
	if err != nil {
		return fmt.Errorf("relocations: %w", err)
	}
	if uint64(r.Link) >= uint64(len(f.sections)) || f.sections[r.Link].Type != elf.SHT_SYMTAB {
		return &FormatError{"relocations", "no symbol table"}
	}
	symbols, release, err := f.once(&f.sections[r.Link])
	defer release()
	if err != nil {
		return fmt.Errorf("relocations: %w", err)
	}
	h := f.header
	size := h.pick(relSize32, relSize64)
	if r.Type == elf.SHT_RELA {
		size = h.pick(relaSize32, relaSize64)
	}
	for n := 0; len(raw) >= size && n < maxRelocations; n++ {
		var x fieldRelocation
		var symbol uint64
		if h.is64 {
			info := h.u64(raw[8:])
			x.off = h.u64(raw)
			symbol, x.kind = f.splitInfo(info)
			if r.Type == elf.SHT_RELA {
				x.addend = h.u64(raw[16:])
			}
		} else {
			info := h.u32(raw[4:])
			x.off, symbol, x.kind = uint64(h.u32(raw)), uint64(info>>8), uint64(info&0xff)
			if r.Type == elf.SHT_RELA {
				x.addend = uint64(int64(int32(h.u32(raw[8:]))))
			}
		}
		raw = raw[size:]
		var ok bool
		if x.value, x.section, ok = f.relocationSymbol(symbols, symbol); ok {
			do(&x)
		}
	}
	return nil
}

// once returns the bytes of a section that is read once, and does not keep them: they are valid
// until release, which the caller calls even after an error.
func (f *File) once(s *Section) (data []byte, release func(), err error) {
	if !within(s.Offset, s.Size, f.size) {
		return nil, func() {}, &FormatError{"section " + s.Name, "reaches beyond the end of the file"}
	}
	if data, ok := f.held(s.Offset, s.Size); ok {
		return data, func() {}, nil
	}
	k := f.read(s)
	return k.data, func() { f.room.release(k.arena) }, k.err
}

// splitInfo returns the symbol and the kind in a 64-bit r_info. MIPS has up to three kinds there,
// in a fixed byte order; debug sections need the first.
func (f *File) splitInfo(info uint64) (symbol, kind uint64) {
	switch {
	case f.Machine != elf.EM_MIPS:
		return info >> 32, info & 0xffffffff
	case f.header.big:
		return info >> 32, info & 0xff
	}
	return info & 0xffffffff, info >> 56
}

// relocationSymbol returns the address of a symbol of the table, 0 if this file does not define it,
// and the index of its section.
func (f *File) relocationSymbol(table []byte, index uint64) (addr uint64, section int, ok bool) {
	h := f.header
	size := uint64(h.pick(symSize32, symSize64))
	if index >= uint64(len(table))/size {
		return 0, 0, false
	}
	b := table[index*size:]
	var shndx uint16
	if h.is64 {
		shndx, addr = h.u16(b[6:]), h.u64(b[8:])
	} else {
		shndx, addr = h.u16(b[14:]), uint64(h.u32(b[4:]))
	}
	if i := elf.SectionIndex(shndx); i != elf.SHN_UNDEF && i < elf.SHN_LORESERVE && uint64(i) < uint64(len(f.sections)) {
		addr += f.sections[i].Addr
		section = int(i)
	}
	return addr, section, true
}

// A relocation is the change to a field.
type relocation struct {
	bytes uint8 // bytes of the field; 0: no change
	does  relocationKind
}

type relocationKind uint8

const (
	set      relocationKind = iota // the field becomes the address
	relative                       // the field becomes the address less its own address
	add                            // the address is added to the field
	subtract                       // the address is subtracted from the field
	setLow6                        // as set, for the low six bits
	sub6                           // as subtract, for the low six bits
)

// apply changes one field. The addend of SHT_REL is the present value of the field.
func (f *File) apply(field []byte, how relocation, implicit bool, value, addend, place uint64) {
	var held uint64
	big := f.header.big
	switch len(field) {
	case 1:
		held = uint64(field[0])
	case 2:
		held = uint64(f.header.u16(field))
	case 4:
		held = uint64(f.header.u32(field))
	case 8:
		held = f.header.u64(field)
	}
	if implicit && how.does <= relative {
		addend = held
	}
	v := value + addend
	switch how.does {
	case relative:
		v -= place
	case add:
		v = held + v
	case subtract:
		v = held - v
	case setLow6:
		v = held&^0x3f | v&0x3f
	case sub6:
		v = held&^0x3f | (held-v)&0x3f
	}
	var order binary.ByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	switch len(field) {
	case 1:
		field[0] = byte(v)
	case 2:
		order.PutUint16(field, uint16(v))
	case 4:
		order.PutUint32(field, uint32(v))
	case 8:
		order.PutUint64(field, v)
	}
}

// relocationOf returns the effect of a relocation in a machine's ABI, for the kinds that occur in
// debug sections.
func relocationOf(m elf.Machine, kind uint64) relocation {
	switch m {
	case elf.EM_X86_64:
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_64, elf.R_X86_64_DTPOFF64:
			return relocation{8, set}
		case elf.R_X86_64_32, elf.R_X86_64_32S, elf.R_X86_64_DTPOFF32:
			return relocation{4, set}
		case elf.R_X86_64_PC64:
			return relocation{8, relative}
		case elf.R_X86_64_PC32:
			return relocation{4, relative}
		}
	case elf.EM_386:
		switch elf.R_386(kind) {
		case elf.R_386_32:
			return relocation{4, set}
		case elf.R_386_PC32:
			return relocation{4, relative}
		}
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(kind) {
		case elf.R_AARCH64_ABS64:
			return relocation{8, set}
		case elf.R_AARCH64_ABS32:
			return relocation{4, set}
		case elf.R_AARCH64_ABS16:
			return relocation{2, set}
		case elf.R_AARCH64_PREL64:
			return relocation{8, relative}
		case elf.R_AARCH64_PREL32:
			return relocation{4, relative}
		case elf.R_AARCH64_PREL16:
			return relocation{2, relative}
		}
	case elf.EM_ARM:
		switch elf.R_ARM(kind) {
		case elf.R_ARM_ABS32:
			return relocation{4, set}
		case elf.R_ARM_REL32:
			return relocation{4, relative}
		}
	case elf.EM_RISCV:
		return relocationOfRISCV(elf.R_RISCV(kind))
	case elf.EM_LOONGARCH:
		return relocationOfLoongArch(elf.R_LARCH(kind))
	case elf.EM_MIPS:
		switch elf.R_MIPS(kind) {
		case elf.R_MIPS_64:
			return relocation{8, set}
		case elf.R_MIPS_32:
			return relocation{4, set}
		case elf.R_MIPS_PC32:
			return relocation{4, relative}
		}
	case elf.EM_SPARC, elf.EM_SPARC32PLUS, elf.EM_SPARCV9:
		switch elf.R_SPARC(kind) {
		case elf.R_SPARC_64, elf.R_SPARC_UA64:
			return relocation{8, set}
		case elf.R_SPARC_32, elf.R_SPARC_UA32:
			return relocation{4, set}
		case elf.R_SPARC_DISP64:
			return relocation{8, relative}
		case elf.R_SPARC_DISP32:
			return relocation{4, relative}
		}
	case elf.EM_PPC:
		switch elf.R_PPC(kind) {
		case elf.R_PPC_ADDR32:
			return relocation{4, set}
		case elf.R_PPC_REL32:
			return relocation{4, relative}
		}
	case elf.EM_BPF:
		switch kind {
		case bpfAbs64:
			return relocation{8, set}
		case bpfAbs32:
			return relocation{4, set}
		}
	case elf.EM_PPC64:
		switch elf.R_PPC64(kind) {
		case elf.R_PPC64_ADDR64:
			return relocation{8, set}
		case elf.R_PPC64_ADDR32:
			return relocation{4, set}
		case elf.R_PPC64_REL64:
			return relocation{8, relative}
		case elf.R_PPC64_REL32:
			return relocation{4, relative}
		}
	case elf.EM_S390:
		switch elf.R_390(kind) {
		case elf.R_390_64:
			return relocation{8, set}
		case elf.R_390_32:
			return relocation{4, set}
		case elf.R_390_PC64:
			return relocation{8, relative}
		case elf.R_390_PC32:
			return relocation{4, relative}
		}
	}
	return relocation{}
}

// relocationOfRISCV includes the pairs that express a difference: the linker may shorten the code
// between two labels.
func relocationOfRISCV(kind elf.R_RISCV) relocation {
	switch kind {
	case elf.R_RISCV_64:
		return relocation{8, set}
	case elf.R_RISCV_32, elf.R_RISCV_SET32:
		return relocation{4, set}
	case elf.R_RISCV_SET16:
		return relocation{2, set}
	case elf.R_RISCV_SET8:
		return relocation{1, set}
	case elf.R_RISCV_SET6:
		return relocation{1, setLow6}
	case elf.R_RISCV_32_PCREL:
		return relocation{4, relative}
	case elf.R_RISCV_ADD64:
		return relocation{8, add}
	case elf.R_RISCV_ADD32:
		return relocation{4, add}
	case elf.R_RISCV_ADD16:
		return relocation{2, add}
	case elf.R_RISCV_ADD8:
		return relocation{1, add}
	case elf.R_RISCV_SUB64:
		return relocation{8, subtract}
	case elf.R_RISCV_SUB32:
		return relocation{4, subtract}
	case elf.R_RISCV_SUB16:
		return relocation{2, subtract}
	case elf.R_RISCV_SUB8:
		return relocation{1, subtract}
	case elf.R_RISCV_SUB6:
		return relocation{1, sub6}
	}
	return relocation{}
}

// relocationOfLoongArch does likewise.
func relocationOfLoongArch(kind elf.R_LARCH) relocation {
	switch kind {
	case elf.R_LARCH_64:
		return relocation{8, set}
	case elf.R_LARCH_32:
		return relocation{4, set}
	case elf.R_LARCH_64_PCREL:
		return relocation{8, relative}
	case elf.R_LARCH_32_PCREL:
		return relocation{4, relative}
	case elf.R_LARCH_ADD64:
		return relocation{8, add}
	case elf.R_LARCH_ADD32:
		return relocation{4, add}
	case elf.R_LARCH_ADD16:
		return relocation{2, add}
	case elf.R_LARCH_ADD8:
		return relocation{1, add}
	case elf.R_LARCH_SUB64:
		return relocation{8, subtract}
	case elf.R_LARCH_SUB32:
		return relocation{4, subtract}
	case elf.R_LARCH_SUB16:
		return relocation{2, subtract}
	case elf.R_LARCH_SUB8:
		return relocation{1, subtract}
	case elf.R_LARCH_SUB6:
		return relocation{1, sub6}
	}
	return relocation{}
}

// Relocations of BPF, which debug/elf has no names for.
const (
	bpfAbs64 = 2
	bpfAbs32 = 3
)
