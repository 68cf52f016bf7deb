package object

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// CalledImport returns the name of the function in another file to which the call before addr
// leads. The call goes through the procedure linkage table, or on x86-64 through the global offset
// table. CalledImport works on x86-64, little-endian Arm, AArch64 and RISC-V. name is valid until
// Close.
func (f *File) CalledImport(addr uint64) (name []byte, ok bool) {
	var buf [8]byte
	code, ok := f.codeBefore(buf[:], addr)
	if n := len(code); ok && f.Machine == elf.EM_X86_64 && n >= 6 && code[n-6] == 0xff && code[n-5] == 0x15 { // call *slot(%rip)
		return f.importAt(addr + signed(binary.LittleEndian.Uint32(code[n-4:]), 0))
	}
	target, ok := f.CallTarget(addr)
	if !ok {
		return nil, false
	}
	return f.StubImport(target)
}

// StubImport returns the name of the function that an entry of a procedure linkage table jumps to.
// target is the entry's address. It works on the machines of [File.CalledImport].
func (f *File) StubImport(target uint64) (name []byte, ok bool) {
	if f.Machine == elf.EM_386 {
		return nil, false
	}
	slot, ok := f.stubSlot(target)
	if !ok {
		return nil, false
	}
	return f.importAt(f.wrap(slot))
}

// CallMayLeave reports whether the call that ends at addr may lead to another file: it is indirect,
// or leads to an entry of the procedure linkage table. It works on the machines of
// [File.CallTarget].
func (f *File) CallMayLeave(addr uint64) bool {
	target, ok := f.CallTarget(addr)
	return !ok || f.IsStub(target)
}

// IsStub reports whether the code at target is an entry of a procedure linkage table, on the
// machines of [File.CallTarget].
func (f *File) IsStub(target uint64) bool {
	_, ok := f.stubSlot(target)
	return ok
}

// stubSlot returns the address of the word that holds the destination of the jump at target. ok is
// false if target is not an entry of a procedure linkage table. On i386 slot is 0.
func (f *File) stubSlot(target uint64) (slot uint64, ok bool) {
	code := f.codeFrom(target)
	switch f.Machine {
	case elf.EM_X86_64:
		return x86Slot(code, target)
	case elf.EM_386:
		code = bytes.TrimPrefix(code, []byte("\xf3\x0f\x1e\xfb")) // endbr32
		// jmp *slot, jmp *slot(%ebx)
		return 0, bytes.HasPrefix(code, []byte("\xff\x25")) || bytes.HasPrefix(code, []byte("\xff\xa3"))
	case elf.EM_AARCH64:
		if word(code, 0) == 0xd503245f { // bti c
			code, target = code[4:], target+4
		}
		page, ldr := word(code, 0), word(code, 1) // adrp x16, slot; ldr x17, [x16, slot]
		return adrp(target, page) + uint64(ldr>>10&0xfff<<3), page&0x9f00001f == 0x90000010 && ldr&0xffc003ff == 0xf9400211
	case elf.EM_RISCV:
		auipc, load := word(code, 0), word(code, 1) // auipc t3, slot; ld t3, slot(t3)
		return target + signed(auipc&^0xfff, 0) + signed(load, 20), auipc&0xfff == 0xe17 && load&0xfefff == 0xe2e03
	case elf.EM_ARM:
		return armSlot(code, target)
	}
	return 0, false
}

// word returns the little-endian word i of code; 0 beyond its end.
func word(code []byte, i int) uint32 {
	if len(code) < 4*i+4 {
		return 0
	}
	return binary.LittleEndian.Uint32(code[4*i:])
}

// x86Slot is stubSlot for x86-64: jmp *slot(%rip).
func x86Slot(code []byte, target uint64) (slot uint64, ok bool) {
	jump := bytes.TrimPrefix(bytes.TrimPrefix(code, []byte("\xf3\x0f\x1e\xfa")), []byte("\xf2")) // endbr64, bnd
	if len(jump) < 6 || jump[0] != 0xff || jump[1] != 0x25 {
		return 0, false
	}
	end := target + uint64(len(code)-len(jump)+6)
	return end + signed(binary.LittleEndian.Uint32(jump[2:]), 0), true
}

// armSlot is stubSlot for Arm: add ip, pc, #n; add ip, ip, #n; ldr pc, [ip, #n]!
func armSlot(code []byte, target uint64) (slot uint64, ok bool) {
	if bytes.HasPrefix(code, []byte("\x78\x47")) && len(code) > 4 { // bx pc; nop, for callers in Thumb code
		code, target = code[4:], target+4
	}
	slot = target + 8
	for i := range 4 {
		w, add := word(code, i), uint32(0xe28cc000)
		if i == 0 {
			add = 0xe28fc000
		}
		if w&0xfffff000 != add {
			return slot + uint64(w&0xfff), i > 0 && w&0xfffff000 == 0xe5bcf000
		}
		slot += uint64(bits.RotateLeft32(w&0xff, -int(w>>8&15)*2))
	}
	return 0, false
}

// An importSlot is a word that the loader sets to the address of a symbol.
type importSlot struct {
	slot   uint64
	table  uint32 // index of the section with the symbol table
	symbol uint32
}

// importSlots are the words that the loader sets, sorted by address. The zero value means that they
// were not read yet.
type importSlots struct {
	all  []importSlot
	read bool
}

func (t *importSlots) footprint() int64 {
	return int64(cap(t.all)) * int64(unsafe.Sizeof(importSlot{}))
}

// importAt returns the name of the symbol for the word at slot. The first call reads all tables of
// relocations.
func (f *File) importAt(slot uint64) (name []byte, ok bool) {
	if !f.imports.read {
		f.imports = importSlots{all: f.readImports(), read: true}
	}
	i, ok := slices.BinarySearchFunc(f.imports.all, slot, func(s importSlot, slot uint64) int { return cmp.Compare(s.slot, slot) })
	if !ok {
		return nil, false
	}
	s := f.imports.all[i]
	return f.nameOf(int(s.table), uint64(s.symbol))
}

// readImports returns the words that relocations set to the address of a symbol, at most
// maxImports.
func (f *File) readImports() (all []importSlot) {
	left := f.entriesIn(relSize32)
	for i := range f.sections {
		s := &f.sections[i]
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL || s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_COMPRESSED != 0 || int(s.Link) >= len(f.sections) {
			continue
		}
		data, err := f.tableData(s)
		if err != nil {
			continue
		}
		entry := relSize32
		switch {
		case f.is64 && s.Type == elf.SHT_RELA:
			entry = relaSize64
		case f.is64:
			continue // the 64-bit machines of CalledImport use SHT_RELA
		case s.Type == elf.SHT_RELA:
			entry = relaSize32
		}
		for ; len(data) >= entry && left > 0 && len(all) < maxImports; data = data[entry:] {
			left--
			r := importSlot{table: s.Link}
			if f.is64 {
				r.slot, r.symbol = f.u64(data), uint32(f.u64(data[8:])>>32)
			} else {
				r.slot, r.symbol = uint64(f.u32(data)), f.u32(data[4:])>>8
			}
			if r.symbol != 0 {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b importSlot) int { return cmp.Compare(a.slot, b.slot) })
	return slices.Clip(all)
}

// nameOf returns the name of symbol i in a symbol table. index is the number of the table's
// section.
func (f *File) nameOf(index int, i uint64) (name []byte, ok bool) {
	t := rawSymbols{d: &f.sectionData}
	if !t.loadSection(index, &f.sections[index]) || i == 0 || i >= t.count() {
		return nil, false
	}
	name = t.name(t.d.u32(t.raw[i*t.entry:]))
	return name, len(name) > 0
}
