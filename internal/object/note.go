package object

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
)

// ErrNoBuildID reports an ELF file without a build ID.
var ErrNoBuildID = errors.New("no build ID")

// ntGNUBuildID is the type of the build ID's note; its owner is "GNU".
const ntGNUBuildID = 3

// BuildID returns the build ID, 1 to 64 bytes, of the ELF file of size bytes in r. It uses a few
// small reads. It searches at most 1 MiB of notes: first in the segments, then in the sections. The
// segments of a separate debug file may have no bytes, and object files have no segments. Errors
// are [ErrNoBuildID], a *[FormatError], a *[LimitError], or come from r.
func BuildID(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 0 {
		return nil, &FormatError{"file size", fmt.Sprintf("%d bytes", size)}
	}
	h, err := readHeader(r, uint64(size))
	if err != nil {
		return nil, err
	}
	search := noteSearch{header: &h, r: r, size: uint64(size), budget: maxNotes, owner: "GNU\x00", kind: ntGNUBuildID, limit: maxID}
	segments, segmentsErr := h.readSegments(r, search.size)
	if id, _ := search.file(segments, nil); id != nil {
		return id, nil
	}
	sections, _, sectionsErr := h.readSections(r, search.size)
	id, err := search.file(nil, sections)
	if id != nil {
		return id, nil
	}
	if err := both(err, both(segmentsErr, sectionsErr)); err != nil {
		return nil, err
	}
	return nil, ErrNoBuildID
}

// BuildID returns the build ID of the open file. It agrees with the function BuildID, unless
// headers that do not concern notes are damaged.
func (f *File) BuildID() ([]byte, error) {
	if f.closed {
		return nil, ErrNoBuildID
	}
	search := noteSearch{header: &f.header, r: f.bytes(), size: f.size, budget: maxNotes, owner: "GNU\x00", kind: ntGNUBuildID, limit: maxID}
	id, err := search.file(f.segments, f.sections)
	switch {
	case id != nil:
		return id, nil
	case err != nil:
		return nil, err
	}
	return nil, ErrNoBuildID
}

// A noteSearch searches the notes of one file for one note, within its budget.
type noteSearch struct {
	header *header
	r      io.ReaderAt
	size   uint64
	budget uint64 // bytes left to read
	err    error  // error of the first read that failed

	owner string // owner of the note to find, with its NUL
	kind  uint32 // type of that note
	limit uint64 // most bytes of the note's contents, which must not be empty
}

// file searches for the wanted note in the segments, then in the sections, and returns its
// contents. If it finds none, it returns nil and the error of the first failed read, if any.
func (s *noteSearch) file(segments []Segment, sections []Section) ([]byte, error) {
	for _, p := range segments {
		if p.Type == elf.PT_NOTE {
			if desc := s.in(p.Offset, p.FileSize, p.Align); desc != nil {
				return desc, nil
			}
		}
	}
	for i := range sections {
		if n := &sections[i]; n.Type == elf.SHT_NOTE {
			if desc := s.in(n.Offset, n.Size, n.Align); desc != nil {
				return desc, nil
			}
		}
	}
	return nil, s.err
}

// in searches for the wanted note in the size bytes of notes at off, and returns its contents, or
// nil.
func (s *noteSearch) in(off, size, align uint64) []byte {
	if off > s.size {
		return nil
	}
	size = min(size, s.size-off, s.budget)
	s.budget -= size
	var b []byte
	if data, ok := s.r.(inHand); ok {
		b = data[off : off+size]
	} else {
		b = make([]byte, size)
		if err := readFull(s.r, b, off); err != nil {
			if s.err == nil {
				s.err = fmt.Errorf("read notes: %w", err)
			}
			return nil
		}
	}
	if align == 8 {
		if desc := s.find(b, 8); desc != nil {
			return desc
		}
		// some linkers put notes aligned to 4 into segments aligned to 8
	}
	return s.find(b, 4)
}

// find returns the contents of the wanted note, or nil. Parts of notes are aligned to align bytes
// (gABI "Note Section"). The result aliases notes.
func (s *noteSearch) find(notes []byte, align uint64) []byte {
	const head = 12 // n_namesz, n_descsz, n_type
	l := s.header.layout
	for len(notes) >= head {
		nameSize, descSize, kind := uint64(l.u32(notes)), uint64(l.u32(notes[4:])), l.u32(notes[8:])
		desc := alignUp(head+nameSize, align)
		end := desc + descSize // below 2^34: no overflow
		if end > uint64(len(notes)) {
			return nil
		}
		if kind == s.kind && nameSize == uint64(len(s.owner)) && string(notes[head:head+nameSize]) == s.owner && 1 <= descSize && descSize <= s.limit {
			return notes[desc:end:end]
		}
		notes = notes[min(alignUp(end, align), uint64(len(notes))):]
	}
	return nil
}

// alignUp rounds n up to a multiple of align, a power of two.
func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// BuildIDOf is [BuildID] for the bytes of a whole file. The result is a slice of data.
func BuildIDOf(data []byte) ([]byte, error) { return BuildID(inHand(data), int64(len(data))) }
