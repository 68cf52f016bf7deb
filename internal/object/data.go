package object

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A kept is a section in memory, or the error for it: a decompression bomb is not inflated twice.
type kept struct {
	data    []byte
	offHeap bool   // data is not on the Go heap
	arena   *arena // of data alone; nil: it has none
	err     error
}

// Data returns the bytes of the section of this name: a slice of the mapping if it is stored plain,
// otherwise inflated (SHF_COMPRESSED with zlib or zstd, and .zdebug_x if the name is .debug_x) or
// read, whole and once. Debug sections of an object file that was not linked (ET_REL) are copies
// with their relocations applied. The slice is valid until Close and must not be changed. Data
// returns nil, nil if there is no such section or its bytes are not in this file (SHT_NOBITS).
// Errors are a *[FormatError], a *[LimitError], or come from the decoder or the reader; they are
// kept too.
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
		return f.keep(name, f.relocated(s, isLegacy(name, s)))
	}
	return f.sectionData(name, s, isLegacy(name, s))
}

// sectionData returns the bytes of s, which are kept by name if they are copied or inflated.
func (f *File) sectionData(name string, s *Section, legacy bool) ([]byte, error) {
	if !within(s.Offset, s.Size, f.size) {
		return nil, &FormatError{"section " + name, fmt.Sprintf("%d bytes at %#x reach beyond the end of the file (%d bytes)", s.Size, s.Offset, f.size)}
	}
	compressed := legacy || s.Flags&elf.SHF_COMPRESSED != 0
	if !compressed {
		if b, ok := f.held(s.Offset, s.Size); ok {
			return b, nil
		}
	}
	if k, ok := f.kept[name]; ok {
		return k.data, k.err
	}
	if compressed {
		return f.keep(name, f.inflate(s, legacy, true))
	}
	return f.keep(name, f.read(s))
}

// keep keeps k as the answer for name, unless it failed for want of memory. The memory of a section
// that failed is released.
func (f *File) keep(name string, k kept) ([]byte, error) {
	if k.err != nil {
		f.room.release(k.arena)
		k = kept{err: fmt.Errorf("section %s: %w", name, k.err)}
		if errors.Is(k.err, ErrMemory) {
			return nil, k.err
		}
	}
	if f.kept == nil {
		f.kept = make(map[string]kept)
	}
	f.kept[name] = k
	return k.data, k.err
}

// HeapCost returns the bytes of memory that Data(name) would newly hold: 0 if the section is
// mapped, missing or kept already. For a compressed section it is the size that its header claims,
// which Data enforces.
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
	} else if f.Held() && !f.relocates(name, s) {
		return 0
	}
	if size > maxHeapSection {
		return 0 // Data refuses it
	}
	return int64(size)
}

// isLegacy reports whether s, found by name, is compressed in the way that SHF_COMPRESSED replaced.
func isLegacy(name string, s *Section) bool {
	return strings.HasPrefix(s.Name, zdebug) && !strings.HasPrefix(name, zdebug)
}
