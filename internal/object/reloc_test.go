package object

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"
)

// A reloc is an entry of a relocation section.
type reloc struct {
	off    uint64
	symbol uint32
	kind   uint32
	addend int64
}

// relocs returns a section of relocations for the section target, with symbols from the table at
// index symtab.
func (m image) relocs(kind elf.SectionType, symtab, target uint32, all []reloc) imageSection {
	w := m.writer()
	for _, r := range all {
		w.word(r.off)
		if m.is32() {
			w.word(uint64(r.symbol)<<8 | uint64(r.kind))
		} else {
			w.word(uint64(r.symbol)<<32 | uint64(r.kind))
		}
		if kind == elf.SHT_RELA {
			w.word(uint64(r.addend))
		}
	}
	return imageSection{Section{Name: ".rela.debug_info", Type: kind, Link: symtab, Info: target}, w.String()}
}

// asObject returns a copy of b with the type of an object file, ET_REL.
func (m image) asObject(b []byte) []byte {
	b = bytes.Clone(b)
	if m.big {
		b[16], b[17] = 0, byte(elf.ET_REL)
	} else {
		b[16], b[17] = byte(elf.ET_REL), 0
	}
	return b
}

func TestDebugSectionsOfObjectFilesAreRelocated(t *testing.T) {
	const rela, rel = elf.SHT_RELA, elf.SHT_REL
	symbols := []imageSymbol{
		{"f", 0x1234, 4, elf.STT_FUNC, elf.STB_GLOBAL, 1},
		{"elsewhere", 0, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, elf.SHN_UNDEF},
	}
	tests := []struct {
		name   string
		layout image
		kind   elf.SectionType
		held   string
		all    []reloc
		want   string
	}{
		{"64 bits", layouts[0], rela, "--------", []reloc{{0, 1, uint32(elf.R_X86_64_64), 1}}, "\x35\x12\x00\x00\x00\x00\x00\x00"},
		{"32 bits, a negative addend", layouts[0], rela, "--------", []reloc{{2, 1, uint32(elf.R_X86_64_32), -4}}, "--\x30\x12\x00\x00--"},
		{"undefined", layouts[0], rela, "----", []reloc{{0, 2, uint32(elf.R_X86_64_32), 7}}, "\x07\x00\x00\x00"},
		{"no symbol", layouts[0], rela, "----", []reloc{{0, 0, uint32(elf.R_X86_64_32), 7}}, "\x07\x00\x00\x00"},
		{"relative", layouts[0], rela, "------", []reloc{{2, 1, uint32(elf.R_X86_64_PC32), 0}}, "--\x32\x12\x00\x00"},
		{"unknown kind", layouts[0], rela, "----", []reloc{{0, 1, 250, 0}}, "----"},
		{"symbol that is not there", layouts[0], rela, "----", []reloc{{0, 3, uint32(elf.R_X86_64_32), 0}, {0, 1 << 31, uint32(elf.R_X86_64_32), 0}}, "----"},
		{"outside", layouts[0], rela, "----", []reloc{{1, 1, uint32(elf.R_X86_64_32), 0}, {1<<64 - 1, 1, uint32(elf.R_X86_64_32), 0}, {4, 1, uint32(elf.R_X86_64_32), 0}}, "----"},
		{"big endian", layouts[1], rela, "--------", []reloc{{0, 1, uint32(elf.R_PPC64_ADDR32), 0}, {4, 1, uint32(elf.R_PPC64_REL32), 0}}, "\x00\x00\x12\x34\x00\x00\x12\x30"},
		{"the addend is in the field", layouts[2], rel, "\x01\x00\x00\x00", []reloc{{0, 1, uint32(elf.R_ARM_ABS32), 0}}, "\x35\x12\x00\x00"},
		{"difference", image{machine: elf.EM_RISCV}, rela, "\x01\x00\x10\x00", []reloc{
			{0, 1, uint32(elf.R_RISCV_ADD16), 0}, {2, 1, uint32(elf.R_RISCV_SUB8), 0x22}}, "\x35\x12\xba\x00"},
		{"six bits", image{machine: elf.EM_RISCV}, rela, "\xc0\xff", []reloc{
			{0, 1, uint32(elf.R_RISCV_SET6), 1}, {1, 1, uint32(elf.R_RISCV_SUB6), 0}}, "\xf5\xcb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.layout
			m.sections = append([]imageSection{
				{Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR}, "code"},
				{Section{Name: ".debug_info", Type: elf.SHT_PROGBITS}, tt.held},
				{Section{Name: ".debug_str", Type: elf.SHT_PROGBITS}, "as it is"},
			}, m.symtab(t, elf.SHT_SYMTAB, 5, symbols)...)
			m.sections = append(m.sections, m.relocs(tt.kind, 4, 2, tt.all))
			linked := m.bytes(t)
			for _, object := range []bool{true, false} {
				b, want := linked, tt.held
				if object {
					b, want = m.asObject(linked), tt.want
				}
				f, err := openBytes(b)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if got, err := f.Data(".debug_info"); string(got) != want || err != nil {
						t.Errorf("object file %v: Data = %q, %v; want %q", object, got, err, want)
					}
				}
				if got, err := f.Data(".debug_str"); string(got) != "as it is" || err != nil {
					t.Errorf("Data(.debug_str) = %q, %v", got, err)
				}
				f.Close()
			}
		})
	}
}

func TestRelocationsThatCannotBeReadAreErrors(t *testing.T) {
	m := layouts[0]
	m.sections = append([]imageSection{
		{Section{Name: ".debug_info", Type: elf.SHT_PROGBITS}, "info"},
		{Section{Name: ".rela.debug_info", Type: elf.SHT_RELA, Info: 1, Link: 1}, strings.Repeat("\x00", 24)},
	}, m.symtab(t, elf.SHT_SYMTAB, 4, nil)...)
	f, err := openBytes(m.asObject(m.bytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Data(".debug_info"); err == nil {
		t.Errorf("Data = %q, want an error", got)
	}
}
