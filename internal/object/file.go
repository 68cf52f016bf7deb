package object

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"
)

// A File is one open ELF file. One goroutine at a time may use it; any number of them may read the
// results of its methods until Close.
type File struct {
	Class   elf.Class
	Order   binary.ByteOrder
	Machine elf.Machine
	Type    elf.Type

	header   header
	r        io.ReaderAt
	size     uint64
	mapped   []byte      // the whole file; nil if image is set, or it is read on demand
	image    *smallImage // of a small file
	inMemory bool        // mapped is not a mapping of a file
	onHeap   bool        // mapped is on the heap
	closed   bool
	placed   bool // sections have addresses of placeSections
	damage   error
	sections []Section
	exec     []uint32 // indexes of the sections with code
	// the first section of each name; nil if there are fewer than manySections
	byName map[string]*Section
	// the first section with relocations for each section, in an object file that was not linked
	relocs   map[*Section]*Section
	names    int // bytes of section names on the heap
	segments []Segment
	kept     map[string]kept // sections that were inflated or copied, by the name asked for
	symbols  symbols         // .symtab, or .dynsym if that is missing or empty
	dynamic  *symbols        // .dynsym if symbols is .symtab; nil: not asked yet
	mini     mini
	unwind   unwind
	room     room
	claims   claims
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

// Open reads the headers of an ELF file of size bytes. If osFile is not nil it must be the file
// that r reads; Open maps it if the system can do that, otherwise sections are read from r on
// demand. The caller closes r and osFile: r must be readable until Close; osFile may be closed
// after Open if r is another reader.
//
// A file with unreadable section headers still opens if its program headers are good, and vice
// versa; [File.Damage] returns what is missing. Errors are a *[FormatError], a *[LimitError], or
// come from r.
func Open(r io.ReaderAt, size int64, osFile *os.File) (*File, error) {
	if size < 0 {
		return nil, &FormatError{"file size", fmt.Sprintf("%d bytes", size)}
	}
	f, err := openHeaders(r, uint64(size))
	if err != nil {
		return nil, err
	}
	if osFile != nil {
		if m, err := mapFile(osFile, size); err == nil {
			f.mapped = m
		} // else read on demand
	}
	return f, nil
}

// openHeaders returns the file of size bytes that r reads, with its headers.
func openHeaders(r io.ReaderAt, size uint64) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{
		Class: elf.ELFCLASS32, Order: binary.LittleEndian, Machine: h.Machine, Type: h.Type,
		header: h, r: r, size: size,
	}
	if h.is64 {
		f.Class = elf.ELFCLASS64
	}
	if h.big {
		f.Order = binary.BigEndian
	}
	var segmentsErr, sectionsErr error
	var table []byte
	f.segments, segmentsErr = h.readSegments(r, f.size)
	f.sections, table, sectionsErr = h.readSections(r, f.size)
	if data, ok := r.(inHand); ok {
		f.image = f.imageOf(data)
		f.r = f.image
	}
	if sectionsErr == nil {
		sectionsErr = f.nameSections(table)
	}
	f.placeSections()
	f.listSections()
	f.damage = both(sectionsErr, segmentsErr)
	if f.damage != nil && len(f.segments) == 0 && len(f.sections) == 0 {
		return nil, f.damage
	}
	return f, nil
}

// both joins two errors in one line; either may be nil.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

// nameSections gives the sections the names that table refers to.
func (f *File) nameSections(table []byte) error {
	sections := f.sections
	index := uint64(f.header.shstrndx)
	if len(sections) == 0 || index == uint64(elf.SHN_UNDEF) {
		return nil
	}
	bad := func(format string, args ...any) error {
		return &FormatError{"section names", fmt.Sprintf(format, args...)}
	}
	if index >= uint64(len(sections)) {
		return bad("in section %d of %d", index, len(sections))
	}
	s := &sections[index]
	if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || !within(s.Offset, s.Size, f.size) {
		return bad("%d bytes at %#x are not in the file (%d bytes)", s.Size, s.Offset, f.size)
	}
	if s.Size > maxNames {
		return &LimitError{"bytes of section names", s.Size, maxNames}
	}
	names, err := f.sectionNames(s)
	if err != nil {
		return fmt.Errorf("read section names: %w", err)
	}
	for i := range sections {
		off := f.header.nameAt(table, i)
		if uint64(off) >= uint64(len(names)) {
			continue
		}
		name := names[off:]
		name = name[:min(len(name), maxName)]
		if end := strings.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		sections[i].Name = name
	}
	return nil
}

// sectionNames returns the names in s: in the image, which does not change, or in a copy.
func (f *File) sectionNames(s *Section) (string, error) {
	if f.image != nil {
		b := f.image.find(s.Offset, s.Size)
		return unsafe.String(unsafe.SliceData(b), len(b)), nil
	}
	b := make([]byte, s.Size)
	if err := readFull(f.r, b, s.Offset); err != nil {
		return "", err
	}
	f.names = len(b)
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

// Close unmaps the file: every byte slice that it returned is invalid after that. A second Close
// does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	if f.mini.file != nil {
		f.mini.file.Close()
	}
	m := f.mapped
	f.mapped, f.image, f.kept, f.symbols, f.dynamic, f.mini, f.unwind = nil, nil, nil, symbols{}, nil, mini{}, unwind{}
	err := f.room.free()
	if m == nil || f.inMemory {
		return err
	}
	return errors.Join(err, unmap(m))
}

// Damage returns what is wrong with the headers of a file that opened nevertheless, or nil:
// sections or segments may be missing.
func (f *File) Damage() error { return f.damage }

// CutOff returns the size that the file has if nothing is cut off: the end of its section headers or
// of its last section, and whether the file ends before. It ignores segments, whose contents a
// debug file need not have.
func (f *File) CutOff() (whole uint64, cut bool) {
	entry := uint64(f.header.pick(shdrSize32, shdrSize64))
	ends := func(off, size uint64) {
		if end := off + size; end >= off { // else a header of nonsense
			whole = max(whole, end)
		}
	}
	if f.header.shoff != 0 && f.header.shnum <= maxSections {
		ends(f.header.shoff, max(f.header.shnum, 1)*entry)
	}
	for i := range f.sections {
		if s := &f.sections[i]; s.Type != elf.SHT_NULL && s.Type != elf.SHT_NOBITS {
			ends(s.Offset, s.Size)
		}
	}
	return whole, whole > f.size
}

// Sections returns all section headers in the order of the file, the null section first. The caller
// must not change the slice.
func (f *File) Sections() []Section { return f.sections }

// Segments returns all program headers in the order of the file. The caller must not change the
// slice.
func (f *File) Segments() []Segment { return f.segments }

// Section returns the first section of this name. The name .debug_x finds .zdebug_x too.
func (f *File) Section(name string) (Section, bool) {
	if s := f.section(name); s != nil {
		return *s, true
	}
	return Section{}, false
}

func (f *File) section(name string) *Section {
	if name == "" {
		return nil
	}
	if s := f.exactly(name); s != nil {
		return s
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		return f.exactly(zdebug + rest)
	}
	return nil
}

func (f *File) exactly(name string) *Section {
	if f.byName != nil {
		return f.byName[name]
	}
	for i := range f.sections {
		if f.sections[i].Name == name {
			return &f.sections[i]
		}
	}
	return nil
}

// listSections makes the maps that find one section among many: relocating a file that was not
// linked looks up each of its sections.
func (f *File) listSections() {
	many := len(f.sections) >= manySections
	if many {
		f.byName = make(map[string]*Section)
	}
	if f.Type == elf.ET_REL {
		f.relocs = make(map[*Section]*Section)
	}
	for i := range f.sections {
		s := &f.sections[i]
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			f.exec = append(f.exec, uint32(i))
		}
		if many && f.byName[s.Name] == nil {
			f.byName[s.Name] = s
		}
		if f.relocs != nil && (s.Type == elf.SHT_RELA || s.Type == elf.SHT_REL) && uint64(s.Info) < uint64(len(f.sections)) {
			if to := &f.sections[s.Info]; f.relocs[to] == nil {
				f.relocs[to] = s
			}
		}
	}
}

// zdebug is the prefix of compressed sections in the way that SHF_COMPRESSED replaced.
const zdebug = ".zdebug_"

// codeSection returns the executable section that covers addr.
func (f *File) codeSection(addr uint64) *Section {
	for _, i := range f.exec {
		if s := &f.sections[i]; s.covers(addr) {
			return s
		}
	}
	return nil
}

// ExecCovers reports whether code is loaded at addr: whether an executable section covers it, or,
// in a file without such sections, an executable PT_LOAD segment.
func (f *File) ExecCovers(addr uint64) bool {
	some := false
	for _, i := range f.exec {
		if s := &f.sections[i]; s.Flags&elf.SHF_ALLOC != 0 {
			if s.covers(addr) {
				return true
			}
			some = true
		}
	}
	if some {
		return false
	}
	for _, p := range f.segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Addr && addr-p.Addr < p.MemSize {
			return true
		}
	}
	return false
}

// Footprint returns the bytes of heap that the file holds: headers, sections inflated or read, the
// symbol table. It counts neither mapped pages nor the bytes that Options.Take granted.
func (f *File) Footprint() int64 {
	n := int64(unsafe.Sizeof(*f)) + int64(f.names) + int64(len(f.byName))*32 + int64(len(f.relocs))*32 +
		int64(cap(f.sections))*int64(unsafe.Sizeof(Section{})) +
		int64(cap(f.segments))*int64(unsafe.Sizeof(Segment{})) + int64(cap(f.exec))*4
	for _, k := range f.kept {
		if !k.offHeap {
			n += int64(cap(k.data))
		}
	}
	if f.onHeap {
		n += int64(cap(f.mapped))
	}
	n += f.image.footprint()
	if f.mini.file != nil {
		n += f.mini.file.Footprint()
	}
	return n + f.symbols.footprint() + f.dynamic.footprint() + f.unwind.footprint()
}
