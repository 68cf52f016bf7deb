package object

import (
	"debug/elf"
	"fmt"
)

// Loaded returns the bytes of the file that are loaded at addr, to the end of the PT_LOAD segment.
// It returns nil if no bytes of the file are loaded at addr. The slice is valid until Close and
// must not be changed. It is part of the mapping, or of a kept copy of the segment. The segments of
// a separate debug file describe the program's file: Loaded returns nil for addresses in sections
// without bytes.
func (d *sectionData) Loaded(addr uint64) []byte {
	if d.closed {
		return nil
	}
	for i := range d.segments {
		p := &d.segments[i]
		if p.Type == elf.PT_LOAD && addr >= p.Addr && addr-p.Addr < p.FileSize {
			if len(d.sections) > 0 && d.withoutBytes(addr) {
				return nil
			}
			if data := d.SegmentData(i); addr-p.Addr < uint64(len(data)) {
				return data[addr-p.Addr:]
			}
			return nil
		}
	}
	return nil
}

// SegmentData returns the bytes of segment i, at most to the end of the file; nil if they cannot be
// read. See [File.Loaded].
func (d *sectionData) SegmentData(i int) []byte {
	if d.closed || i < 0 || i >= len(d.segments) {
		return nil
	}
	p := &d.segments[i]
	if p.Offset >= d.size {
		return nil
	}
	size := min(p.FileSize, d.size-p.Offset)
	if b, ok := d.held(p.Offset, size); ok {
		return b
	}
	key := fmt.Sprintf("\x01%d", i) // not a section's name; keys of tableData begin with NUL
	if k, ok := d.kept[key]; ok {
		return k.data
	}
	data, _ := d.keep(key, d.read(&Section{Offset: p.Offset, Size: size}))
	return data
}

// RelativeRelocations calls visit for each relative relocation, until visit returns false. For such
// a relocation, the loader writes the load bias plus value to the word at addr. RelativeRelocations
// reads only tables with addends: SHT_RELA, or DT_RELA in a file without such sections. With other
// tables, the values are in the words themselves.
func (d *sectionData) RelativeRelocations(visit func(addr, value uint64) bool) {
	kind, ok := relativeKind(d.Machine)
	if !ok || d.closed {
		return
	}
	sections, left := 0, d.entriesIn(relSize32)
	for i := range d.sections {
		s := &d.sections[i]
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_COMPRESSED != 0 {
			continue
		}
		sections++
		if data, err := d.tableData(s); err == nil && !d.relativeIn(data, kind, &left, visit) {
			return
		}
	}
	if sections > 0 {
		return
	}
	if addr, size := d.dynamicTable(elf.DT_RELA, elf.DT_RELASZ); size > 0 {
		data := d.Loaded(addr)
		d.relativeIn(data[:min(uint64(len(data)), size)], kind, &left, visit)
	}
}

// entriesIn returns the number of entries of this size that fit into the file. A count in the
// headers is not a bound: the sections of a hostile file may overlap.
func (d *sectionData) entriesIn(entry int) int { return int(d.size / uint64(entry)) }

// relativeKind returns the type of the relocation that adds the load bias, for machines whose
// tables have addends.
func relativeKind(m elf.Machine) (kind uint32, ok bool) {
	switch m {
	case elf.EM_X86_64:
		return uint32(elf.R_X86_64_RELATIVE), true
	case elf.EM_AARCH64:
		return uint32(elf.R_AARCH64_RELATIVE), true
	case elf.EM_PPC64:
		return uint32(elf.R_PPC64_RELATIVE), true
	case elf.EM_S390:
		return uint32(elf.R_390_RELATIVE), true
	case elf.EM_RISCV:
		return uint32(elf.R_RISCV_RELATIVE), true
	case elf.EM_LOONGARCH:
		return uint32(elf.R_LARCH_RELATIVE), true
	}
	return 0, false
}

func (h *header) relativeIn(data []byte, kind uint32, left *int, visit func(addr, value uint64) bool) bool {
	entry := h.pick(relaSize32, relaSize64)
	for ; len(data) >= entry && *left > 0; data = data[entry:] {
		*left--
		var addr, value uint64
		if h.is64 {
			if h.u32(data[h.infoAt():]) != kind {
				continue
			}
			addr, value = h.u64(data), h.u64(data[16:])
		} else {
			if h.u32(data[4:])&0xff != kind {
				continue
			}
			addr, value = uint64(h.u32(data)), uint64(h.u32(data[8:]))
		}
		if !visit(addr, value) {
			return false
		}
	}
	return true
}

// infoAt returns the offset of the type in an ELF-64 relocation: the lower half of r_info.
func (l layout) infoAt() int {
	if l.big {
		return 12
	}
	return 8
}

// dynamicTable returns the address and size of a table from the dynamic section; 0, 0 if either is
// missing. The parameters are the tags of the entries that hold the address and the size.
func (d *sectionData) dynamicTable(at, length elf.DynTag) (addr, size uint64) {
	for i := range d.segments {
		if d.segments[i].Type != elf.PT_DYNAMIC {
			continue
		}
		data := d.SegmentData(i)
		entry := d.pick(8, 16)
		for ; len(data) >= entry; data = data[entry:] {
			tag, value := d.word(data), d.word(data[entry/2:])
			switch elf.DynTag(tag) {
			case elf.DT_NULL:
				return 0, 0
			case at:
				addr = value
			case length:
				size = value
			}
			if addr != 0 && size != 0 {
				return addr, size
			}
		}
		break
	}
	return 0, 0
}

func (l layout) word(b []byte) uint64 {
	if l.is64 {
		return l.u64(b)
	}
	return uint64(l.u32(b))
}

// Code returns the code section that covers addr, and the section's address; nil if the file has no
// such bytes. Relocations are not applied. The slice is valid until Close and must not be changed.
func (d *sectionData) Code(addr uint64) (code []byte, start uint64) {
	if d.closed {
		return nil, 0
	}
	for i := range d.sections {
		s := &d.sections[i]
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS || !s.covers(addr) {
			continue
		}
		if d.Type == elf.ET_REL {
			if data, err := d.DataOf(i); err == nil {
				return data, s.Addr
			}
			return nil, 0
		}
		if code = d.Loaded(s.Addr); uint64(len(code)) > s.Size {
			code = code[:s.Size]
		}
		return code, s.Addr
	}
	return nil, 0
}
