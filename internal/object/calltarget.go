package object

import (
	"debug/elf"
	"encoding/binary"
)

// CallTarget returns the target of the direct call that ends at addr, on x86-64 and AArch64. ok is
// false without such a call. For a function of another file, the target is the code that jumps to
// it: see [File.CalledImport].
func (f *File) CallTarget(addr uint64) (target uint64, ok bool) {
	var buf [8]byte
	code, ok := f.codeBefore(buf[:], addr)
	if !ok {
		return 0, false
	}
	switch n := len(code); f.Machine {
	case elf.EM_X86_64:
		if n >= 5 && code[n-5] == 0xe8 {
			target = addr + uint64(int64(int32(binary.LittleEndian.Uint32(code[n-4:]))))
			return target, f.ExecCovers(target)
		}
	case elf.EM_AARCH64:
		if n >= 4 && addr%4 == 0 {
			w := binary.LittleEndian.Uint32(code[n-4:])
			target = addr - 4 + uint64(int64(int32(w<<6)>>4))
			return target, w>>26 == 0x25 && f.ExecCovers(target)
		}
	}
	return 0, false
}

// CalledImport returns the name of the imported function that the instruction before addr calls, on
// x86-64: through the procedure linkage table, or through the global offset table. name is valid
// until Close.
func (f *File) CalledImport(addr uint64) (name []byte, ok bool) {
	if f.Machine != elf.EM_X86_64 {
		return nil, false
	}
	var buf [8]byte
	code, ok := f.codeBefore(buf[:], addr)
	if n := len(code); ok && n >= 6 && code[n-6] == 0xff && code[n-5] == 0x15 { // call *slot(%rip)
		return f.importAt(addr + uint64(int64(int32(binary.LittleEndian.Uint32(code[n-4:])))))
	}
	target, ok := f.CallTarget(addr)
	if !ok {
		return nil, false
	}
	stub := f.Loaded(target)
	skip := 0
	for _, before := range []string{"\xf3\x0f\x1e\xfa", "\xf2"} { // endbr64, bnd
		if len(stub) > skip+len(before) && string(stub[skip:skip+len(before)]) == before {
			skip += len(before)
		}
	}
	if len(stub) < skip+6 || stub[skip] != 0xff || stub[skip+1] != 0x25 { // jmp *slot(%rip)
		return nil, false
	}
	end := target + uint64(skip) + 6
	return f.importAt(end + uint64(int64(int32(binary.LittleEndian.Uint32(stub[skip+2:])))))
}

// importAt returns the name of the symbol whose address the loader writes to the word at slot.
func (f *File) importAt(slot uint64) (name []byte, ok bool) {
	for i := range f.sections {
		s := &f.sections[i]
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_COMPRESSED != 0 || int(s.Link) >= len(f.sections) {
			continue
		}
		data, err := f.tableData(s)
		if err != nil {
			continue
		}
		for ; len(data) >= relaSize64; data = data[relaSize64:] {
			if f.u64(data) == slot {
				return f.nameOf(int(s.Link), uint64(f.u32(data[12:])))
			}
		}
	}
	return nil, false
}

// nameOf returns the name of symbol i of a table, which is the section at index.
func (f *File) nameOf(index int, i uint64) (name []byte, ok bool) {
	t := rawSymbols{d: &f.sectionData}
	if !t.loadSection(index, &f.sections[index]) || i == 0 || i >= t.count() {
		return nil, false
	}
	name = t.name(t.d.u32(t.raw[i*t.entry:]))
	return name, len(name) > 0
}
