package object

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/inflate"
)

// A kept is a section on the heap, or why it cannot be had: a bomb is not lit twice.
type kept struct {
	data []byte
	err  error
}

// Data returns the bytes of the section of this name: a slice of the mapping when it is stored plain, otherwise
// inflated (SHF_COMPRESSED with zlib or zstd, and .zdebug_x when .debug_x is asked for) or read, whole and once. Debug sections of
// an object file that was not linked (ET_REL) are copies with their relocations applied.
// It is valid, and not to be changed, until Close.
// It returns nil, nil when there is no such section or its bytes are not in this file (SHT_NOBITS).
// Errors are a *[FormatError], a *[LimitError], or come from the decoder or the reader; they are kept too.
func (f *File) Data(name string) ([]byte, error) {
	if f.closed {
		return nil, fmt.Errorf("section %s: %w", name, os.ErrClosed)
	}
	if k, ok := f.kept[name]; ok {
		return k.data, k.err
	}
	s := f.section(name)
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	if f.relocates(name, s) {
		data, err := f.relocated(s, isLegacy(name, s))
		return f.keep(name, kept{data, err})
	}
	return f.sectionData(name, s, isLegacy(name, s))
}

// sectionData returns the bytes of s, kept by name when they come to lie on the heap.
func (f *File) sectionData(name string, s *Section, legacy bool) ([]byte, error) {
	if !within(s.Offset, s.Size, f.size) {
		return nil, &FormatError{"section " + name, fmt.Sprintf("%d bytes at %#x reach beyond the end of the file (%d bytes)", s.Size, s.Offset, f.size)}
	}
	compressed := legacy || s.Flags&elf.SHF_COMPRESSED != 0
	if f.mapped != nil && !compressed {
		return f.mapped[s.Offset : s.Offset+s.Size : s.Offset+s.Size], nil
	}
	if k, ok := f.kept[name]; ok {
		return k.data, k.err
	}
	var k kept
	if compressed {
		k.data, k.err = f.inflate(s, legacy)
	} else {
		k.data, k.err = f.read(s)
	}
	return f.keep(name, k)
}

// keep makes k the answer for name.
func (f *File) keep(name string, k kept) ([]byte, error) {
	if k.err != nil {
		k = kept{err: fmt.Errorf("section %s: %w", name, k.err)}
	}
	if f.kept == nil {
		f.kept = make(map[string]kept)
	}
	f.kept[name] = k
	return k.data, k.err
}

// Inflate inflates those of the named sections that are compressed, as many at a time as there are CPUs, and keeps what comes
// of it for Data: where a lookup needs several large sections, it waits for the largest instead of for their sum. It
// starts goroutines, and returns when they have ended. Errors are left to Data.
func (f *File) Inflate(names ...string) {
	type job struct {
		name   string
		s      *Section
		legacy bool
		kept
	}
	var jobs []*job
	for _, name := range names {
		s := f.section(name)
		if f.closed || s == nil || s.Type == elf.SHT_NOBITS || !within(s.Offset, s.Size, f.size) {
			continue
		}
		if _, ok := f.kept[name]; ok || f.relocates(name, s) || slices.ContainsFunc(jobs, func(j *job) bool { return j.name == name }) {
			continue
		}
		legacy := isLegacy(name, s)
		if legacy || s.Flags&elf.SHF_COMPRESSED != 0 {
			jobs = append(jobs, &job{name: name, s: s, legacy: legacy})
		}
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		p, err := f.plan(j.s, j.legacy)
		if j.err = err; err != nil {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			j.data, j.err = p.run()
		})
	}
	all.Wait()
	for _, j := range jobs {
		f.keep(j.name, j.kept)
	}
}

// HeapCost returns the bytes of heap that Data(name) would newly hold: 0 for what is mapped, missing or kept already. What a
// compressed section costs is what it claims; Data holds it to that.
func (f *File) HeapCost(name string) int64 {
	s := f.section(name)
	if _, ok := f.kept[name]; ok || f.closed || s == nil || s.Type == elf.SHT_NOBITS || !within(s.Offset, s.Size, f.size) {
		return 0
	}
	size := s.Size
	if legacy := isLegacy(name, s); legacy || s.Flags&elf.SHF_COMPRESSED != 0 {
		_, claimed, _, err := f.compression(s, legacy)
		if err != nil {
			return 0
		}
		size = claimed
	} else if f.mapped != nil && !f.relocates(name, s) {
		return 0
	}
	if size > maxHeapSection {
		return 0 // Data refuses it
	}
	return int64(size)
}

// isLegacy reports whether s, found by name, is compressed in the way from before SHF_COMPRESSED.
func isLegacy(name string, s *Section) bool {
	return strings.HasPrefix(s.Name, zdebug) && !strings.HasPrefix(name, zdebug)
}

func (f *File) read(s *Section) ([]byte, error) {
	if s.Size > maxHeapSection {
		return nil, &LimitError{"bytes", s.Size, maxHeapSection}
	}
	b := make([]byte, s.Size)
	return b, readFull(f.r, b, s.Offset)
}

// inflate returns the section uncompressed.
func (f *File) inflate(s *Section, legacy bool) ([]byte, error) {
	p, err := f.plan(s, legacy)
	if err != nil {
		return nil, err
	}
	return p.run()
}

// An inflation is a compressed section that is known to be within the limits, and where it will go.
type inflation struct {
	method          elf.CompressionType
	claimed, packed uint64
	src             *io.SectionReader
	to              []byte // of claimed bytes and the slack; nil: as they come
}

// plan says how a section is to be inflated. Not more than one goroutine may call it at a time; what it returns can be run in any.
func (f *File) plan(s *Section, legacy bool) (p inflation, err error) {
	method, claimed, n, err := f.compression(s, legacy)
	if err != nil {
		return p, err
	}
	packed := s.Size - n
	if claimed > maxHeapSection {
		return p, &LimitError{"bytes, inflated", claimed, maxHeapSection}
	}
	if claimed > ratioFree && claimed/maxRatio > packed {
		return p, &LimitError{fmt.Sprintf("bytes, inflated from %d", packed), claimed, packed * maxRatio}
	}
	// The offset fits an int64: it lies within the file.
	p = inflation{method: method, claimed: claimed, packed: packed, src: io.NewSectionReader(f.r, int64(s.Offset+n), int64(packed))}
	p.to, err = f.room(claimed, packed)
	return p, err
}

// run inflates. The compressed bytes are read by ReadAt, not from the mapping: a fault in a
// goroutine of the decoder could not be recovered. A decoder that panics has met bytes that it cannot read.
func (p inflation) run() (data []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // of the file that it may go to
	defer func() {
		if p := recover(); p != nil {
			data, err = nil, fmt.Errorf("inflate: %v", p)
		}
	}()
	src := bufio.NewReaderSize(p.src, int(min(p.packed+16, 256<<10)))
	switch p.method {
	case elf.COMPRESS_ZLIB:
		if p.to != nil {
			if err := inflate.Zlib(p.to, int(p.claimed), src); err != nil {
				return nil, fmt.Errorf("inflate by zlib: %w", err)
			}
			return p.to[:p.claimed:p.claimed], nil
		}
		z, err := zlib.NewReader(src)
		if err != nil {
			return nil, fmt.Errorf("inflate by zlib: %w", err)
		}
		defer z.Close()
		b, err := p.read(z)
		if err != nil {
			return nil, fmt.Errorf("inflate by zlib: %w", err)
		}
		return b, nil
	case elf.COMPRESS_ZSTD:
		window := uint64(maxWindow)
		if p.claimed < maxWindow {
			window = max(minWindow, uint64(1)<<bits.Len64(p.claimed))
		}
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return nil, fmt.Errorf("inflate by zstd: %w", err)
		}
		defer z.Close()
		b, err := p.read(z)
		if err != nil {
			return nil, fmt.Errorf("inflate by zstd: %w", err)
		}
		return b, nil
	}
	return nil, &FormatError{"compression header", fmt.Sprintf("unknown method %d", p.method)}
}

// compression reads the header of a compressed section: the method, the size inflated, and how long the header is.
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

// likely reports whether so many bytes may be allocated before they have come: few, or what packed bytes may well be inflated to.
func likely(claimed, packed uint64) bool { return claimed <= 1<<20 || claimed/16 <= packed }

// read reads what is claimed.
func (p inflation) read(r io.Reader) ([]byte, error) {
	if p.to != nil {
		return readClaimed(r, p.to[:0:p.claimed], p.claimed)
	}
	return readClaimed(r, make([]byte, 0, min(p.claimed, 1<<20)), p.claimed)
}

// readClaimed appends exactly claimed bytes to b, which is empty, and reads the end of the stream. More room than b has is made only when the bytes have
// come.
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
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return nil, &FormatError{"compressed data", fmt.Sprintf("goes on behind the %d bytes that its header says", claimed)}
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("at the end of %d bytes: %w", claimed, err) // its checksum is wrong
	}
	return b, nil
}
