package object

import (
	"cmp"
	"debug/elf"
	"io"
	"math"
	"slices"
	"unsafe"
)

// A smallImage has the bytes of a small file that are in its sections and segments. It lacks
// headers and page padding: for a library of 16 KiB, it has 5 KiB.
type smallImage struct {
	bytes   []byte
	extents []extent // in the order of their offsets; none touches the next
}

// An extent is a stretch of the file: size bytes from offset off, at smallImage.bytes[at:].
type extent struct{ off, size, at uint32 }

// OpenSmall is [OpenWith] for a file that the caller has read completely into data. It copies the
// bytes that it keeps. So the File needs neither a mapping nor a descriptor, and a later truncation
// of the file does no harm.
func OpenSmall(data []byte, o Options) (*File, error) {
	if uint64(len(data)) > math.MaxUint32 {
		return nil, &LimitError{"bytes of a small file", uint64(len(data)), math.MaxUint32}
	}
	f, err := openHeaders(inHand(data), uint64(len(data)))
	if err != nil {
		return nil, err
	}
	f.room.Options = o
	return f, nil
}

// inHand holds all bytes of a file, and reads them as an io.ReaderAt.
type inHand []byte

// ReadAt implements [io.ReaderAt].
func (b inHand) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// imageOf returns the image of the file with the headers h and the bytes data.
func (h *headers) imageOf(data []byte) *smallImage {
	all := make([]extent, 0, 64)
	add := func(off, size uint64) {
		if off < uint64(len(data)) && size > 0 {
			all = append(all, extent{off: uint32(off), size: uint32(min(size, uint64(len(data))-off))})
		}
	}
	for i := range h.sections {
		if s := &h.sections[i]; s.Type != elf.SHT_NOBITS {
			add(s.Offset, s.Size)
		}
	}
	for i := range h.segments {
		add(h.segments[i].Offset, h.segments[i].FileSize)
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
	kept, sum := all[:0], uint32(0)
	for _, e := range all {
		if last := len(kept) - 1; last >= 0 && e.off <= kept[last].off+kept[last].size+maxGap {
			if end := e.off + e.size; end > kept[last].off+kept[last].size {
				sum += end - kept[last].off - kept[last].size
				kept[last].size = end - kept[last].off
			}
			continue
		}
		e.at = sum
		sum += e.size
		kept = append(kept, e)
	}
	m := &smallImage{bytes: make([]byte, sum), extents: slices.Clone(kept)}
	for _, e := range m.extents {
		copy(m.bytes[e.at:], data[e.off:e.off+e.size])
	}
	return m
}

// maxGap is the largest gap in bytes between two parts of one extent.
const maxGap = 16

// find returns the size bytes at off, or nil if no extent has all of them.
func (m *smallImage) find(off, size uint64) []byte {
	i, found := slices.BinarySearchFunc(m.extents, off, func(e extent, off uint64) int { return cmp.Compare(uint64(e.off), off) })
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	e := &m.extents[i]
	skip := off - uint64(e.off)
	if skip > uint64(e.size) || size > uint64(e.size)-skip {
		return nil
	}
	at := uint64(e.at) + skip
	return m.bytes[at : at+size : at+size]
}

// ReadAt implements [io.ReaderAt] for bytes of one extent.
func (m *smallImage) ReadAt(p []byte, off int64) (int, error) {
	b := m.find(uint64(off), uint64(len(p)))
	if off < 0 || b == nil && len(p) > 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, b), nil
}

func (m *smallImage) footprint() int64 {
	if m == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*m)) + int64(cap(m.bytes)) + int64(cap(m.extents))*int64(unsafe.Sizeof(extent{}))
}
