package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// headers are the section and program headers of a file.
type headers struct {
	header
	Class elf.Class
	Order binary.ByteOrder

	size     uint64 // bytes of the file
	damage   error
	sections []Section
	segments []Segment
	names    int      // bytes of section names on the heap
	exec     []uint32 // indexes of the sections with code
	placed   bool     // sections have addresses from placeSections
	// the first section of each name; nil below manySections sections
	byName map[string]*Section
	// in an object file, the first section with relocations for each section
	relocs map[*Section]*Section
}

// A Section is a section header. Its values are not checked: use [File.Data] for the bytes.
type Section struct {
	Name   string // cut after 4 KiB; empty if the file's section names cannot be read
	Type   elf.SectionType
	Flags  elf.SectionFlag
	Addr   uint64 // link-time address; 0 if the section is not loaded
	Offset uint64 // bytes from the start of the file
	// bytes in the file (compressed, if SHF_COMPRESSED); bytes in memory if SHT_NOBITS
	Size  uint64
	Link  uint32
	Info  uint32
	Align uint64
}

// covers reports whether addr is in the section as loaded.
func (s *Section) covers(addr uint64) bool {
	return addr >= s.Addr && addr-s.Addr < s.Size
}

// A Segment is a program header, unchecked like a [Section].
type Segment struct {
	Type     elf.ProgType
	Flags    elf.ProgFlag
	Offset   uint64 // bytes from the start of the file
	Addr     uint64 // link-time virtual address
	FileSize uint64 // bytes in the file
	MemSize  uint64 // bytes in memory
	Align    uint64
}

// Damage returns the fault in the headers of a file that could still be opened, or nil. With a
// fault, sections or segments may be missing.
func (h *headers) Damage() error { return h.damage }

// CutOff returns the size of the whole file by its section headers, and whether the file is
// shorter. It ignores segments: a debug file need not have their contents.
func (h *headers) CutOff() (whole uint64, cut bool) {
	entry := uint64(h.pick(shdrSize32, shdrSize64))
	ends := func(off, size uint64) {
		if end := off + size; end >= off { // otherwise the header is invalid
			whole = max(whole, end)
		}
	}
	if h.shoff != 0 && h.shnum <= maxSections {
		ends(h.shoff, max(h.shnum, 1)*entry)
	}
	for i := range h.sections {
		if s := &h.sections[i]; s.Type != elf.SHT_NULL && s.Type != elf.SHT_NOBITS {
			ends(s.Offset, s.Size)
		}
	}
	return whole, whole > h.size
}

// Sections returns all section headers in the order of the file, the null section first. The caller
// must not change the slice.
func (h *headers) Sections() []Section { return h.sections }

// Segments returns all program headers in the order of the file. The caller must not change the
// slice.
func (h *headers) Segments() []Segment { return h.segments }

// Section returns the first section with a name. The name .debug_x finds .zdebug_x too.
func (h *headers) Section(name string) (Section, bool) {
	if s := h.section(name); s != nil {
		return *s, true
	}
	return Section{}, false
}

func (h *headers) section(name string) *Section {
	if name == "" {
		return nil
	}
	if s := h.exactly(name); s != nil {
		return s
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		return h.exactly(zdebug + rest)
	}
	return nil
}

func (h *headers) exactly(name string) *Section {
	if h.byName != nil {
		return h.byName[name]
	}
	for i := range h.sections {
		if h.sections[i].Name == name {
			return &h.sections[i]
		}
	}
	return nil
}

// inFile returns nil if the bytes of s are in the file, or else a FormatError about the part named
// in what.
func (h *headers) inFile(what string, s *Section) error {
	if within(s.Offset, s.Size, h.size) {
		return nil
	}
	return &FormatError{what, fmt.Sprintf("%d bytes at %#x reach beyond the end of the file (%d bytes)", s.Size, s.Offset, h.size)}
}

// zdebug begins the names of sections in the compressed format before SHF_COMPRESSED.
const zdebug = ".zdebug_"

// listSections fills exec, byName and relocs. The maps save time in object files: relocation looks
// up each of their sections.
func (h *headers) listSections() {
	many := len(h.sections) >= manySections
	if many {
		h.byName = make(map[string]*Section)
	}
	if h.Type == elf.ET_REL {
		h.relocs = make(map[*Section]*Section)
	}
	for i := range h.sections {
		s := &h.sections[i]
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			h.exec = append(h.exec, uint32(i))
		}
		if many && h.byName[s.Name] == nil {
			h.byName[s.Name] = s
		}
		if h.relocs != nil && (s.Type == elf.SHT_RELA || s.Type == elf.SHT_REL) && uint64(s.Info) < uint64(len(h.sections)) {
			if to := &h.sections[s.Info]; h.relocs[to] == nil {
				h.relocs[to] = s
			}
		}
	}
}

func (h *headers) codeSection(addr uint64) *Section {
	for _, i := range h.exec {
		if s := &h.sections[i]; s.covers(addr) {
			return s
		}
	}
	return nil
}

// ExecCovers reports whether code is loaded at addr: an executable section covers it. In a file
// without such sections, an executable PT_LOAD segment must cover it.
func (h *headers) ExecCovers(addr uint64) bool {
	some := false
	for _, i := range h.exec {
		if s := &h.sections[i]; s.Flags&elf.SHF_ALLOC != 0 {
			if s.covers(addr) {
				return true
			}
			some = true
		}
	}
	if some {
		return false
	}
	for _, p := range h.segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Addr && addr-p.Addr < p.MemSize {
			return true
		}
	}
	return false
}

func (h *headers) withoutBytes(addr uint64) bool {
	for i := range h.sections {
		if s := &h.sections[i]; s.Type == elf.SHT_NOBITS && s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_TLS == 0 && s.covers(addr) {
			return true
		}
	}
	return false
}

// hasModeBit reports whether the lowest bit of a function's address selects its instruction set:
// Thumb, microMIPS.
func (h *headers) hasModeBit() bool { return h.Machine == elf.EM_ARM || h.Machine == elf.EM_MIPS }

// footprint returns the number of heap bytes that the headers take.
func (h *headers) footprint() int64 {
	return int64(h.names) + int64(len(h.byName))*32 + int64(len(h.relocs))*32 + int64(cap(h.exec))*4 +
		int64(cap(h.sections))*int64(unsafe.Sizeof(Section{})) + int64(cap(h.segments))*int64(unsafe.Sizeof(Segment{}))
}

// HasCode reports whether the file has the bytes of a code section, unlike a separate debug file.
func (f *File) HasCode() bool {
	return slices.ContainsFunc(f.Sections(), func(s Section) bool {
		return s.Flags&elf.SHF_EXECINSTR != 0 && s.Type != elf.SHT_NOBITS
	})
}
