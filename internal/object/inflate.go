package object

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/inflate"
)

// read returns a copy of the bytes of a section.
func (f *File) read(s *Section) (k kept) {
	if s.Size > maxHeapSection {
		return kept{err: &LimitError{"bytes", s.Size, maxHeapSection}}
	}
	if k.data, k.arena, k.err = f.alloc(s.Size); k.err == nil {
		k.offHeap = k.arena.offHeap()
		k.data = k.data[:s.Size:s.Size]
		if b, ok := f.held(s.Offset, s.Size); ok { // its reader may be closed
			copy(k.data, b)
		} else {
			k.err = readFull(f.r, k.data, s.Offset)
		}
	}
	if k.err != nil {
		k.data = nil
	}
	return k // keep releases the memory
}

// inflate returns the section uncompressed. If spill is set it may be in a file, and cannot be
// changed.
func (f *File) inflate(s *Section, legacy, spill bool) (k kept) {
	p, err := f.inflation(s, legacy)
	if err == nil {
		f.claim(s, &p)
		err = f.refuse(&p)
	}
	if err != nil {
		return kept{err: err}
	}
	giveBack, err := f.room.borrow(p.window())
	if err != nil {
		return kept{err: err}
	}
	defer giveBack()
	// else the buffer grows as bytes arrive: packed bytes hardly inflate to that many
	if f.room.Take != nil || likely(p.claimed, p.packed) {
		p.to, k.arena, k.err = f.alloc(p.claimed + inflate.Slack)
		k.offHeap = k.arena.offHeap()
	}
	if k.err == nil {
		k.data, k.err = p.run()
		return k
	}
	if !spill {
		return k
	}
	a, err := f.room.spill(p.claimed, k.err)
	if err != nil {
		return kept{err: err}
	}
	if err := p.spill(a, 0); err != nil {
		a.free(&f.room.Options)
		return kept{err: err}
	}
	f.room.add(a)
	return kept{data: a.bytes[:p.claimed:p.claimed], offHeap: true, err: a.written()}
}

// An inflation is a compressed section, and its destination.
type inflation struct {
	method          elf.CompressionType
	claimed, packed uint64
	src             *io.SectionReader
	to              []byte // claimed bytes and the slack; nil: a buffer that grows
}

// inflation returns the inflation of a section, without a destination.
func (f *File) inflation(s *Section, legacy bool) (p inflation, err error) {
	method, claimed, n, err := f.compression(s, legacy)
	if err != nil {
		return p, err
	}
	packed := s.Size - n
	// The offset fits an int64: it is within the file.
	return inflation{method: method, claimed: claimed, packed: packed, src: io.NewSectionReader(f.r, int64(s.Offset+n), int64(packed))}, nil
}

// claims are the sums over the compressed sections that were asked for.
type claims struct {
	of              map[*Section]bool
	claimed, packed uint64 // bytes
}

// claim adds a section to the sums.
func (f *File) claim(s *Section, p *inflation) {
	c := &f.claims
	if c.of[s] || p.claimed > maxHeapSection {
		return
	}
	if c.of == nil {
		c.of = make(map[*Section]bool)
	}
	c.of[s] = true
	c.claimed += p.claimed
	c.packed += p.packed
}

// refuse returns the error for a section that must not be inflated: its size, its ratio, or the
// ratio of all sections together exceeds a limit.
func (f *File) refuse(p *inflation) error {
	c := &f.claims
	switch {
	case p.claimed > maxHeapSection:
		return &LimitError{"bytes, inflated", p.claimed, maxHeapSection}
	case p.claimed > ratioFree && p.claimed/maxRatio > p.packed:
		return &LimitError{fmt.Sprintf("bytes, inflated from %d", p.packed), p.claimed, p.packed * maxRatio}
	case c.claimed > ratioFreeFile && c.claimed/maxRatioFile > c.packed:
		return &LimitError{fmt.Sprintf("bytes of all sections, inflated from %d", c.packed), c.claimed, max(ratioFreeFile, c.packed*maxRatioFile)}
	}
	return nil
}

// window returns the bytes that the decoder of a section takes beside its output. For zstd it is
// the window of the first frame; later frames must not need more.
func (p *inflation) window() uint64 {
	if p.method != elf.COMPRESS_ZSTD {
		return 0
	}
	most := uint64(maxWindow)
	if p.claimed < maxWindow {
		most = max(minWindow, uint64(1)<<bits.Len64(p.claimed))
	}
	var buf [zstd.HeaderMaxSize]byte
	n, _ := p.src.ReadAt(buf[:], 0)
	var h zstd.Header
	if h.Decode(buf[:n]) != nil || h.Skippable {
		return most
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	return min(most, max(window, minWindow))
}

// run inflates to memory. The compressed bytes are read by ReadAt, not from the mapping: a fault in
// a goroutine of the decoder could not be recovered. A panic of the decoder is an error of the
// section.
func (p inflation) run() (data []byte, err error) {
	if p.method == elf.COMPRESS_ZLIB && p.to != nil {
		defer caught(&err)
		if err := inflate.Zlib(p.to, int(p.claimed), p.reader(), populate); err != nil {
			return nil, fmt.Errorf("inflate by zlib: %w", err)
		}
		return p.to[:p.claimed:p.claimed], nil
	}
	err = p.decode(func(z io.Reader) (err error) {
		room := p.to[:0:min(p.claimed, uint64(len(p.to)))]
		if p.to == nil {
			room = make([]byte, 0, min(p.claimed, 1<<20))
		}
		data, err = readClaimed(z, room, p.claimed)
		return err
	})
	return data, err
}

// spill inflates to the file of an arena, at offset at. It writes the file, which is not mapped for
// writing: a page fault that waits for the disk would hold up the whole process.
func (p inflation) spill(a *arena, at uint64) error {
	return p.decode(func(z io.Reader) error {
		return copyClaimed(io.NewOffsetWriter(a.file, int64(at)), z, p.claimed)
	})
}

// reader returns the compressed bytes.
func (p inflation) reader() *bufio.Reader {
	return bufio.NewReaderSize(p.src, int(min(p.packed+16, 256<<10)))
}

// decode calls use with the inflated bytes.
func (p inflation) decode(use func(io.Reader) error) (err error) {
	defer caught(&err)
	switch p.method {
	case elf.COMPRESS_ZLIB:
		var z io.ReadCloser
		if z, err = zlib.NewReader(p.reader()); err == nil {
			defer z.Close()
			err = use(z)
		}
		if err != nil {
			return fmt.Errorf("inflate by zlib: %w", err)
		}
		return nil
	case elf.COMPRESS_ZSTD:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(p.reader(), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(p.window())); err == nil {
			defer z.Close()
			err = use(z)
		}
		if err != nil {
			return fmt.Errorf("inflate by zstd: %w", err)
		}
		return nil
	}
	return &FormatError{"compression header", fmt.Sprintf("unknown method %d", p.method)}
}

// caught returns the error for a panic.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("inflate: %v", p)
	}
}

// compression reads the header of a compressed section: the method, the inflated size, and the size
// of the header.
func (f *File) compression(s *Section, legacy bool) (method elf.CompressionType, claimed, length uint64, err error) {
	n := f.header.pick(chdrSize32, chdrSize64)
	if legacy {
		n = 12
	}
	var buf [chdrSize64]byte
	if s.Size < uint64(n) {
		return 0, 0, 0, &FormatError{"compression header", fmt.Sprintf("%d bytes are too few for it", s.Size)}
	}
	if err := readFull(f.r, buf[:n], s.Offset); err != nil {
		return 0, 0, 0, fmt.Errorf("read compression header: %w", err)
	}
	switch {
	case legacy && string(buf[:4]) != "ZLIB":
		return 0, 0, 0, &FormatError{"compression header", "does not begin with ZLIB"}
	case legacy:
		return elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(buf[4:]), uint64(n), nil
	case f.header.is64:
		return elf.CompressionType(f.header.u32(buf[:])), f.header.u64(buf[8:]), uint64(n), nil
	default:
		return elf.CompressionType(f.header.u32(buf[:])), uint64(f.header.u32(buf[4:])), uint64(n), nil
	}
}

// likely reports whether claimed bytes may be allocated before they arrive: they are few, or packed
// bytes may well inflate to them.
func likely(claimed, packed uint64) bool { return claimed <= 1<<20 || claimed/16 <= packed }

// readClaimed appends exactly claimed bytes to b, which is empty, and reads the end of the stream.
// b grows only as bytes arrive.
func readClaimed(r io.Reader, b []byte, claimed uint64) ([]byte, error) {
	for uint64(len(b)) < claimed {
		if len(b) == cap(b) {
			grown := make([]byte, len(b), min(claimed, 2*uint64(cap(b))))
			copy(grown, b)
			b = grown
		}
		n, err := io.ReadFull(r, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("after %d of %d bytes: %w", len(b), claimed, err)
		}
	}
	return b, readEnd(r, claimed)
}

// copyClaimed copies exactly claimed bytes, and reads the end of the stream.
func copyClaimed(w io.Writer, r io.Reader, claimed uint64) error {
	n, err := io.CopyBuffer(w, io.LimitReader(r, int64(claimed)), make([]byte, min(claimed+1, 1<<20)))
	if err == nil && uint64(n) < claimed {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", n, claimed, err)
	}
	return readEnd(r, claimed)
}

// readEnd reads the end of a stream after the claimed bytes.
func readEnd(r io.Reader, claimed uint64) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return &FormatError{"compressed data", fmt.Sprintf("longer than the %d bytes in its header", claimed)}
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("at the end of %d bytes: %w", claimed, err) // a wrong checksum
	}
	return nil
}
