package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/symfilter/symfilter/internal/unpack"
)

// inflate returns the section uncompressed. If spill is set, its bytes may be in a mapped file, and
// must not be changed.
func (d *sectionData) inflate(s *Section, legacy, spill bool) (k kept) {
	p, err := d.stream(s, legacy)
	if err == nil {
		d.claims.add(s, &p)
		err = d.claims.refuse(&p)
	}
	if err != nil {
		return kept{err: err}
	}
	giveBack, err := d.room.borrow(p.Window())
	if err != nil {
		return kept{err: err}
	}
	defer giveBack()
	// A buffer of the claimed size is allocated only if Take bounds the memory, or if the size is
	// likely. Otherwise Into uses a growing buffer: an unlikely size is rarely right.
	var to []byte
	if d.room.Take != nil || p.Likely() {
		to, k.arena, k.err = d.alloc(p.Size + unpack.Slack)
		k.offHeap = k.arena.offHeap()
	}
	if k.err == nil {
		k.data, k.err = p.Into(to, populate)
		return k
	}
	if !spill {
		return k
	}
	a, err := d.room.spill(p.Size, k.err)
	if err != nil {
		return kept{err: err}
	}
	if err := a.fill(p, 0); err != nil {
		a.free(&d.room.Options)
		return kept{err: err}
	}
	d.room.add(a)
	return kept{data: a.bytes[:p.Size:p.Size], offHeap: true, err: a.written()}
}

func (d *sectionData) stream(s *Section, legacy bool) (p unpack.Stream, err error) {
	method, size, n, err := d.compression(s, legacy)
	if err != nil {
		return p, err
	}
	if method != elf.COMPRESS_ZLIB && method != elf.COMPRESS_ZSTD {
		return p, &FormatError{"compression header", fmt.Sprintf("unknown method %d", method)}
	}
	packed := s.Size - n
	// Read with ReadAt, not from the mapping: a fault in a goroutine of the decoder could not be
	// recovered. The offset fits an int64: it is within the file.
	src := io.NewSectionReader(d.r, int64(s.Offset+n), int64(packed))
	return unpack.Stream{Zstd: method == elf.COMPRESS_ZSTD, Size: size, Packed: packed, Src: src}, nil
}

// claims adds up the sizes of the compressed sections that were requested so far.
type claims struct {
	of              map[*Section]bool
	claimed, packed uint64 // bytes
}

func (c *claims) add(s *Section, p *unpack.Stream) {
	if c.of[s] || p.Size > maxHeapSection {
		return
	}
	if c.of == nil {
		c.of = make(map[*Section]bool)
	}
	c.of[s] = true
	c.claimed += p.Size
	c.packed += p.Packed
}

// refuse returns an error if a section must not be inflated: its size, its ratio, or the ratio of
// all sections exceeds a limit.
func (c *claims) refuse(p *unpack.Stream) error {
	switch {
	case p.Size > maxHeapSection:
		return &LimitError{"bytes, inflated", p.Size, maxHeapSection}
	case p.Size > ratioFree && p.Size/maxRatio > p.Packed:
		return &LimitError{fmt.Sprintf("bytes, inflated from %d", p.Packed), p.Size, p.Packed * maxRatio}
	case c.claimed > ratioFreeFile && c.claimed/maxRatioFile > c.packed:
		return &LimitError{fmt.Sprintf("bytes of all sections, inflated from %d", c.packed), c.claimed, max(ratioFreeFile, c.packed*maxRatioFile)}
	}
	return nil
}

// compression reads the header of a compressed section. claimed is the inflated size, length the
// header's size.
func (d *sectionData) compression(s *Section, legacy bool) (method elf.CompressionType, claimed, length uint64, err error) {
	n := d.pick(chdrSize32, chdrSize64)
	if legacy {
		n = 12
	}
	var buf [chdrSize64]byte
	if s.Size < uint64(n) {
		return 0, 0, 0, &FormatError{"compression header", fmt.Sprintf("%d bytes are too few", s.Size)}
	}
	if err := readFull(d.r, buf[:n], s.Offset); err != nil {
		return 0, 0, 0, fmt.Errorf("read compression header: %w", err)
	}
	switch {
	case legacy && string(buf[:4]) != "ZLIB":
		return 0, 0, 0, &FormatError{"compression header", "does not begin with ZLIB"}
	case legacy:
		return elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(buf[4:]), uint64(n), nil
	case d.is64:
		return elf.CompressionType(d.u32(buf[:])), d.u64(buf[8:]), uint64(n), nil
	default:
		return elf.CompressionType(d.u32(buf[:])), uint64(d.u32(buf[4:])), uint64(n), nil
	}
}
