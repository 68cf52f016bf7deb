package object

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// sectionData provides the bytes of sections and segments: inflated, relocated, and kept.
type sectionData struct {
	contents
	headers
	// inflated or copied sections, by the requested name or another key
	kept   map[string]kept
	claims claims
}

// A kept holds the bytes of a section that was copied or inflated, or the error. Since errors are
// kept too, a decompression bomb is not inflated twice.
type kept struct {
	data    []byte
	offHeap bool   // data is not on the Go heap
	arena   *arena // arena that holds only data; nil if data has none
	err     error
}

// Data returns the bytes of the first section with a name; nil, nil if it is missing or has no
// bytes in this file (SHT_NOBITS). The slice is valid until Close and must not be changed.
//
// A section that is not compressed is a slice of the mapping, or is read whole and once. Compressed
// sections are inflated: SHF_COMPRESSED with zlib or zstd, and .zdebug_x if the name is .debug_x.
// Debug sections of an object file (ET_REL) are copies with relocations applied.
//
// Errors are a *[FormatError], a *[LimitError], or come from the decoder or the reader. They are
// kept too, except [ErrMemory]. After Close they wrap [os.ErrClosed].
func (d *sectionData) Data(name string) ([]byte, error) {
	return d.fetch(name, name, d.section(name))
}

// fetch returns the bytes of s, the section found by name. It keeps a copied or inflated section
// under key.
func (d *sectionData) fetch(key, name string, s *Section) ([]byte, error) {
	switch k, ok := d.kept[key]; {
	case d.closed:
		return nil, fmt.Errorf("section %s: %w", name, os.ErrClosed)
	case ok:
		return k.data, k.err
	case s == nil || s.Type == elf.SHT_NOBITS:
		return nil, nil
	case d.relocates(name, s):
		return d.keep(key, d.relocated(s, isLegacy(name, s)))
	}
	return d.stored(key, s, isLegacy(name, s))
}

// stored returns the bytes of s without relocation, inflated if they are compressed. It keeps
// copied or inflated bytes under name.
func (d *sectionData) stored(name string, s *Section, legacy bool) ([]byte, error) {
	if !within(s.Offset, s.Size, d.size) {
		return nil, d.inFile("section "+name, s)
	}
	compressed := legacy || s.Flags&elf.SHF_COMPRESSED != 0
	if !compressed {
		if b, ok := d.held(s.Offset, s.Size); ok {
			return b, nil
		}
	}
	if k, ok := d.kept[name]; ok {
		return k.data, k.err
	}
	if compressed {
		return d.keep(name, d.inflate(s, legacy, true))
	}
	return d.keep(name, d.read(s))
}

// keep keeps k as the result for name, unless k failed for lack of memory. It releases the memory
// of a failed section.
func (d *sectionData) keep(name string, k kept) ([]byte, error) {
	if k.err != nil {
		d.room.release(k.arena)
		k = kept{err: fmt.Errorf("section %s: %w", name, k.err)}
		if errors.Is(k.err, ErrMemory) {
			return nil, k.err
		}
	}
	if d.kept == nil {
		d.kept = make(map[string]kept)
	}
	d.kept[name] = k
	return k.data, k.err
}

// HeapCost returns the bytes of memory that Data(name) would newly hold: 0 if the section is
// mapped, missing, kept already, or refused by Data. For a compressed section it is the size that
// its header claims, which Data enforces.
func (d *sectionData) HeapCost(name string) int64 {
	s := d.section(name)
	if _, ok := d.kept[name]; ok || d.closed || s == nil || s.Type == elf.SHT_NOBITS || !within(s.Offset, s.Size, d.size) {
		return 0
	}
	size := s.Size
	if legacy := isLegacy(name, s); legacy || s.Flags&elf.SHF_COMPRESSED != 0 {
		_, claimed, _, err := d.compression(s, legacy)
		if err != nil {
			return 0
		}
		size = claimed
	} else if d.Held() && !d.relocates(name, s) {
		return 0
	}
	if size > maxHeapSection {
		return 0 // Data refuses it
	}
	return int64(size)
}

// isLegacy reports whether s, found by name, is compressed in the older format of .zdebug_
// sections.
func isLegacy(name string, s *Section) bool {
	return strings.HasPrefix(s.Name, zdebug) && !strings.HasPrefix(name, zdebug)
}

// DataOf is [File.Data] for section i of [File.Sections]. Object files may have several sections of
// one name: a linker joins such sections, or keeps one of a group.
func (d *sectionData) DataOf(i int) (data []byte, err error) {
	s := &d.sections[i]
	key := s.Name
	if d.section(key) != s {
		key = fmt.Sprintf("%s, number %d", key, i)
	}
	return d.fetch(key, s.Name, s)
}

// tableData returns the bytes of s, inflated but not relocated. Copied or inflated bytes are kept
// under the section's name or, unless s is the first section of that name, under its name and
// offset.
func (d *sectionData) tableData(s *Section) ([]byte, error) {
	key := s.Name
	if d.section(s.Name) != s {
		key = "\x00" + s.Name + "\x00" + string(binary.LittleEndian.AppendUint64(nil, s.Offset))
	}
	return d.stored(key, s, false)
}

// nameSections sets the names of the sections. table has their headers.
func (d *sectionData) nameSections(table []byte) error {
	sections := d.sections
	index := uint64(d.shstrndx)
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
	if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || !within(s.Offset, s.Size, d.size) {
		return bad("%d bytes at %#x are not in the file (%d bytes)", s.Size, s.Offset, d.size)
	}
	if s.Size > maxNames {
		return &LimitError{"bytes of section names", s.Size, maxNames}
	}
	names, err := d.sectionNames(s)
	if err != nil {
		return fmt.Errorf("read section names: %w", err)
	}
	for i := range sections {
		off := d.nameAt(table, i)
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

// small returns a copy of an uncompressed section of at most limit bytes; nil for other sections.
func (d *sectionData) small(name string, limit uint64) []byte {
	s := d.section(name)
	if d.closed || s == nil || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.Size > limit || !within(s.Offset, s.Size, d.size) {
		return nil
	}
	b := make([]byte, s.Size)
	if readFull(d.bytes(), b, s.Offset) != nil {
		return nil
	}
	return b
}

// footprint returns the number of heap bytes that hold the file, its headers and the kept sections.
func (d *sectionData) footprint() int64 {
	n := d.contents.footprint() + d.headers.footprint()
	for _, k := range d.kept {
		if !k.offHeap {
			n += int64(cap(k.data))
		}
	}
	return n
}

// sectionNames returns the names in s. They alias the image, which is immutable; without an image
// they are a copy.
func (d *sectionData) sectionNames(s *Section) (string, error) {
	if d.image != nil {
		b := d.image.find(s.Offset, s.Size)
		return unsafe.String(unsafe.SliceData(b), len(b)), nil
	}
	b := make([]byte, s.Size)
	if err := readFull(d.r, b, s.Offset); err != nil {
		return "", err
	}
	d.names = len(b)
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}
