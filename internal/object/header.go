package object

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Sizes in bytes of the structures of gABI chapters 4 and 5, for ELF-32 and ELF-64.
const (
	ehdrSize32, ehdrSize64 = 52, 64
	shdrSize32, shdrSize64 = 40, 64
	phdrSize32, phdrSize64 = 32, 56
	symSize32, symSize64   = 16, 24
	relSize32, relSize64   = 8, 16
	relaSize32, relaSize64 = 12, 24
	chdrSize32, chdrSize64 = 12, 24
)

// A layout is the width and byte order of a file's numbers. Its methods read the first bytes of b;
// the caller has checked its length.
type layout struct {
	is64, big bool
}

func (l layout) u16(b []byte) uint16 {
	if l.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (l layout) u32(b []byte) uint32 {
	if l.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (l layout) u64(b []byte) uint64 {
	if l.big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// pick returns the size of a structure in this class of file.
func (l layout) pick(size32, size64 int) int {
	if l.is64 {
		return size64
	}
	return size32
}

// A header is the ELF header, with large counts from section 0.
type header struct {
	layout
	Type     elf.Type
	Machine  elf.Machine
	Entry    uint64 // address of the first instruction of a program; 0: none
	phoff    uint64
	phnum    uint64
	shoff    uint64
	shnum    uint64
	shstrndx uint32
	// error from reading the counts in section 0; nil if they were read, or not needed
	extended error
}

// readFull reads len(b) bytes at off. If r has fewer, it returns io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, b []byte, off uint64) error {
	if off > math.MaxInt64 {
		return io.ErrUnexpectedEOF
	}
	n, err := r.ReadAt(b, int64(off))
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	default:
		return err
	}
}

// within reports whether [off, off+size) is inside a file of fileSize bytes.
func within(off, size, fileSize uint64) bool {
	return off <= fileSize && size <= fileSize-off
}

func readHeader(r io.ReaderAt, size uint64) (header, error) {
	bad := func(format string, args ...any) (header, error) {
		return header{}, &FormatError{"ELF header", fmt.Sprintf(format, args...)}
	}
	n := min(size, ehdrSize64)
	buf := []byte(nil)
	if data, ok := r.(inHand); ok {
		buf = data[:n]
	} else {
		buf = make([]byte, n)
		if err := readFull(r, buf, 0); err != nil {
			return header{}, fmt.Errorf("read ELF header: %w", err)
		}
	}
	if n < 4 || string(buf[:4]) != elf.ELFMAG {
		return bad("no ELF magic in the first 4 bytes")
	}
	if n < ehdrSize32 {
		return bad("the file ends after %d bytes", n)
	}
	var h header
	switch elf.Class(buf[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		h.is64 = true
	default:
		return bad("class %d is neither ELF-32 nor ELF-64", buf[elf.EI_CLASS])
	}
	switch elf.Data(buf[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
	case elf.ELFDATA2MSB:
		h.big = true
	default:
		return bad("byte order %d is neither little nor big endian", buf[elf.EI_DATA])
	}
	if v := buf[elf.EI_VERSION]; elf.Version(v) != elf.EV_CURRENT {
		return bad("unknown version %d", v)
	}
	if n < uint64(h.pick(ehdrSize32, ehdrSize64)) {
		return bad("the file ends after %d bytes", n)
	}

	h.Type = elf.Type(h.u16(buf[16:]))
	h.Machine = elf.Machine(h.u16(buf[18:]))
	counts := buf[40:] // from e_ehsize on, both classes have the same layout
	if h.is64 {
		h.Entry, h.phoff, h.shoff = h.u64(buf[24:]), h.u64(buf[32:]), h.u64(buf[40:])
		counts = buf[52:]
	} else {
		h.Entry, h.phoff, h.shoff = uint64(h.u32(buf[24:])), uint64(h.u32(buf[28:])), uint64(h.u32(buf[32:]))
	}
	phentsize, phnum := h.u16(counts[2:]), h.u16(counts[4:])
	shentsize, shnum, shstrndx := h.u16(counts[6:]), h.u16(counts[8:]), h.u16(counts[10:])
	h.phnum, h.shnum, h.shstrndx = uint64(phnum), uint64(shnum), uint32(shstrndx)
	if phnum != 0 && int(phentsize) != h.pick(phdrSize32, phdrSize64) {
		return bad("program headers have %d bytes each, not %d", phentsize, h.pick(phdrSize32, phdrSize64))
	}
	if h.shoff == 0 {
		h.shnum, h.shstrndx = 0, 0
		if phnum == pnXnum {
			h.extended = &FormatError{"ELF header", "the number of program headers is in section 0, but there are no sections"}
		}
		return h, nil
	}
	if int(shentsize) != h.pick(shdrSize32, shdrSize64) {
		return bad("section headers have %d bytes each, not %d", shentsize, h.pick(shdrSize32, shdrSize64))
	}
	if shnum == 0 || phnum == pnXnum || elf.SectionIndex(shstrndx) == elf.SHN_XINDEX {
		h.extended = h.readExtended(r, size, shnum == 0, phnum == pnXnum, elf.SectionIndex(shstrndx) == elf.SHN_XINDEX)
	}
	return h, nil
}

// pnXnum as e_phnum means that the number is in sh_info of section 0.
const pnXnum = 0xffff

// readExtended reads from section 0 the counts that exceed the ELF header's fields (gABI "Section
// Headers", index 0).
func (h *header) readExtended(r io.ReaderAt, size uint64, shnum, phnum, shstrndx bool) error {
	n := uint64(h.pick(shdrSize32, shdrSize64))
	if !within(h.shoff, n, size) {
		return &FormatError{"section header 0", fmt.Sprintf("at %#x, beyond the end of the file (%d bytes)", h.shoff, size)}
	}
	var buf [shdrSize64]byte
	if err := readFull(r, buf[:n], h.shoff); err != nil {
		return fmt.Errorf("read section header 0: %w", err)
	}
	s := h.decodeSection(buf[:])
	if shnum {
		h.shnum = s.Size
	}
	if phnum {
		h.phnum = uint64(s.Info)
	}
	if shstrndx {
		h.shstrndx = s.Link
	}
	return nil
}

// decodeSection decodes a section header without the name.
func (h *header) decodeSection(b []byte) (s Section) {
	s.Type = elf.SectionType(h.u32(b[4:]))
	if h.is64 {
		s.Flags = elf.SectionFlag(h.u64(b[8:]))
		s.Addr, s.Offset, s.Size = h.u64(b[16:]), h.u64(b[24:]), h.u64(b[32:])
		s.Link, s.Info = h.u32(b[40:]), h.u32(b[44:])
		s.Align = h.u64(b[48:])
	} else {
		s.Flags = elf.SectionFlag(h.u32(b[8:]))
		s.Addr, s.Offset, s.Size = uint64(h.u32(b[12:])), uint64(h.u32(b[16:])), uint64(h.u32(b[20:]))
		s.Link, s.Info = h.u32(b[24:]), h.u32(b[28:])
		s.Align = uint64(h.u32(b[32:]))
	}
	return s
}

func (h *header) decodeSegment(b []byte) Segment {
	if h.is64 {
		return Segment{
			Type: elf.ProgType(h.u32(b)), Flags: elf.ProgFlag(h.u32(b[4:])),
			Offset: h.u64(b[8:]), Addr: h.u64(b[16:]),
			FileSize: h.u64(b[32:]), MemSize: h.u64(b[40:]), Align: h.u64(b[48:]),
		}
	}
	return Segment{
		Type: elf.ProgType(h.u32(b)), Flags: elf.ProgFlag(h.u32(b[24:])),
		Offset: uint64(h.u32(b[4:])), Addr: uint64(h.u32(b[8:])),
		FileSize: uint64(h.u32(b[16:])), MemSize: uint64(h.u32(b[20:])), Align: uint64(h.u32(b[28:])),
	}
}

// readTable reads num entries of entry bytes each. It fails if num exceeds limit, or if the file
// ends before the last entry. The result may alias the file.
func readTable(r io.ReaderAt, size uint64, what string, off, num uint64, entry int, limit uint64) ([]byte, error) {
	if num == 0 {
		return nil, nil
	}
	if num > limit {
		return nil, &LimitError{what, num, limit}
	}
	bytes := num * uint64(entry)
	if !within(off, bytes, size) {
		return nil, &FormatError{what, fmt.Sprintf("%d at %#x reach beyond the end of the file (%d bytes)", num, off, size)}
	}
	if data, ok := r.(inHand); ok {
		return data[off : off+bytes], nil
	}
	b := make([]byte, bytes)
	if err := readFull(r, b, off); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return b, nil
}

func (h *header) readSegments(r io.ReaderAt, size uint64) ([]Segment, error) {
	if h.extended != nil && h.phnum == pnXnum {
		return nil, h.extended
	}
	entry := h.pick(phdrSize32, phdrSize64)
	b, err := readTable(r, size, "program headers", h.phoff, h.phnum, entry, maxSegments)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	segments := make([]Segment, 0, len(b)/entry)
	for ; len(b) > 0; b = b[entry:] {
		segments = append(segments, h.decodeSegment(b))
	}
	return segments, nil
}

// readSections returns the sections without their names, and their table for nameAt.
func (h *header) readSections(r io.ReaderAt, size uint64) (sections []Section, table []byte, err error) {
	if h.shoff == 0 {
		return nil, nil, nil
	}
	if h.extended != nil {
		return nil, nil, h.extended
	}
	entry := h.pick(shdrSize32, shdrSize64)
	table, err = readTable(r, size, "section headers", h.shoff, h.shnum, entry, maxSections)
	if err != nil || len(table) == 0 {
		return nil, nil, err
	}
	sections = make([]Section, len(table)/entry)
	for i := range sections {
		sections[i] = h.decodeSection(table[i*entry:])
	}
	return sections, table, nil
}

// nameAt returns the offset of section i's name in the section names. table has the section
// headers.
func (h *header) nameAt(table []byte, i int) uint32 {
	return h.u32(table[i*h.pick(shdrSize32, shdrSize64):])
}
