package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// An image describes an ELF file for a test: header, program headers, the sections' bytes, section
// headers. The method bytes adds section 0 and, as the last section, the section names.
type image struct {
	class    elf.Class // ELF-64 if not set
	big      bool
	machine  elf.Machine
	segments []Segment
	sections []imageSection
}

type imageSection struct {
	Section        // Offset is filled in, as is Size unless the type is SHT_NOBITS
	data    string // bytes in the file
}

func (m image) is32() bool { return m.class == elf.ELFCLASS32 }

// A writer appends numbers in the order and width of its file.
type writer struct {
	bytes.Buffer
	order binary.AppendByteOrder
	is32  bool
}

func (w *writer) u16(v ...uint16) {
	for _, v := range v {
		w.Write(w.order.AppendUint16(nil, v))
	}
}

func (w *writer) u32(v ...uint32) {
	for _, v := range v {
		w.Write(w.order.AppendUint32(nil, v))
	}
}

// word writes numbers of the width of an address.
func (w *writer) word(v ...uint64) {
	for _, v := range v {
		if w.is32 {
			w.u32(uint32(v))
		} else {
			w.Write(w.order.AppendUint64(nil, v))
		}
	}
}

func (m image) writer() *writer {
	if m.big {
		return &writer{order: binary.BigEndian, is32: m.is32()}
	}
	return &writer{order: binary.LittleEndian, is32: m.is32()}
}

// bytes returns the file.
func (m image) bytes(t testing.TB) []byte {
	t.Helper()
	l := layout{is64: !m.is32()}
	ehdr, phdr, shdr := l.pick(ehdrSize32, ehdrSize64), l.pick(phdrSize32, phdrSize64), l.pick(shdrSize32, shdrSize64)
	start := ehdr + phdr*len(m.segments)

	names := []byte{0}
	var body bytes.Buffer
	headers := []Section{{}}
	offsets := []uint32{0}
	add := func(s imageSection) {
		for body.Len()%8 != 0 {
			body.WriteByte(0)
		}
		s.Offset = uint64(start + body.Len())
		if s.Type != elf.SHT_NOBITS {
			s.Size = uint64(len(s.data))
		}
		body.WriteString(s.data)
		headers = append(headers, s.Section)
		offsets = append(offsets, uint32(len(names)))
		names = append(append(names, s.Name...), 0)
	}
	for _, s := range m.sections {
		add(s)
	}
	strtab := append(bytes.Clone(names), ".shstrtab\x00"...)
	add(imageSection{Section{Name: ".shstrtab", Type: elf.SHT_STRTAB}, string(strtab)})

	out := m.writer()
	class, data := elf.ELFCLASS64, elf.ELFDATA2LSB
	if m.is32() {
		class = elf.ELFCLASS32
	}
	if m.big {
		data = elf.ELFDATA2MSB
	}
	out.WriteString(elf.ELFMAG + string([]byte{byte(class), byte(data), byte(elf.EV_CURRENT), 15: 0})[:12])
	out.u16(uint16(elf.ET_DYN), uint16(m.machine))
	out.u32(uint32(elf.EV_CURRENT))
	out.word(0, uint64(ehdr), uint64(start+body.Len()))
	out.u32(0)
	out.u16(uint16(ehdr), uint16(phdr), uint16(len(m.segments)), uint16(shdr), uint16(len(headers)), uint16(len(headers)-1))
	for _, p := range m.segments {
		out.u32(uint32(p.Type))
		if !m.is32() {
			out.u32(uint32(p.Flags))
		}
		out.word(p.Offset, p.Addr, 0, p.FileSize, p.MemSize)
		if m.is32() {
			out.u32(uint32(p.Flags))
		}
		out.word(p.Align)
	}
	out.Write(body.Bytes())
	for i, s := range headers {
		out.u32(offsets[i], uint32(s.Type))
		out.word(uint64(s.Flags), s.Addr, s.Offset, s.Size)
		out.u32(s.Link, s.Info)
		out.word(s.Align, 0)
	}
	return out.Bytes()
}

// An imageSymbol is an entry of a symbol table.
type imageSymbol struct {
	name    string
	addr    uint64
	size    uint64
	kind    elf.SymType
	bind    elf.SymBind
	section elf.SectionIndex
}

// symtab returns a symbol table of this type, with the null symbol before symbols, and its string
// section. The parameter at is the index of the string section: the caller must put the section
// there.
func (m image) symtab(t testing.TB, kind elf.SectionType, at int, symbols []imageSymbol) []imageSection {
	t.Helper()
	table := m.writer()
	strings := []byte{0}
	for _, s := range append([]imageSymbol{{}}, symbols...) {
		name := uint32(0)
		if s.name != "" {
			name = uint32(len(strings))
			strings = append(append(strings, s.name...), 0)
		}
		info := elf.ST_INFO(s.bind, s.kind)
		table.u32(name)
		if m.is32() {
			table.word(s.addr, s.size)
		}
		table.Write([]byte{info, 0})
		table.u16(uint16(s.section))
		if !m.is32() {
			table.word(s.addr, s.size)
		}
	}
	name := map[elf.SectionType]string{elf.SHT_SYMTAB: ".symtab", elf.SHT_DYNSYM: ".dynsym"}[kind]
	return []imageSection{
		{Section{Name: name, Type: kind, Link: uint32(at)}, table.String()},
		{Section{Name: ".strtab", Type: elf.SHT_STRTAB}, string(strings)},
	}
}

// openBytes opens a file that is not mapped.
func openBytes(b []byte) (*File, error) { return Open(bytes.NewReader(b), int64(len(b)), nil) }

// layouts are the four combinations of class and byte order.
var layouts = []image{
	{class: elf.ELFCLASS64, machine: elf.EM_X86_64},
	{class: elf.ELFCLASS64, big: true, machine: elf.EM_PPC64},
	{class: elf.ELFCLASS32, machine: elf.EM_ARM},
	{class: elf.ELFCLASS32, big: true, machine: elf.EM_PPC},
}

// name returns the layout of m as text.
func (m image) name() string { return m.class.String() + " " + m.writer().order.String() }
