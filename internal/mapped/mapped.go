// Package mapped finds the link-time address of an instruction in a mapping: a part of a file that
// a process has in its memory.
package mapped

import (
	"debug/elf"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// maxLoads bounds the segments examined for each address. Linkers make five.
const maxLoads = 256

// Reasons why an address has no link-time address.
var (
	ErrOutside = errors.New("the address is outside of the mapping")
	ErrOffsets = errors.New("the debug file does not show which part of the program was mapped; name the program itself with --symbol-path")
)

// A Range is a part of a file in the memory of a process.
type Range struct {
	Start, Limit uint64 // addresses; Limit is after the last one
	Offset       uint64 // offset of Start in the file
}

// Has reports whether an address is in the range.
func (m Range) Has(addr uint64) bool { return m.Start <= addr && addr < m.Limit }

// A File finds the link-time addresses of code from the loaded segments (PT_LOAD) of an ELF file.
type File struct {
	loads []object.Segment // segments of a debug file may have no bytes
	own   bool             // loads are from the mapped file, not from its debug file
}

// NewFile returns a File. The segments are from the mapped file if own is set, or else from its
// debug file.
func NewFile(segments []object.Segment, own bool) File {
	loads := slices.DeleteFunc(slices.Clone(segments), func(s object.Segment) bool {
		return s.Type != elf.PT_LOAD || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr
	})
	return File{loads[:min(len(loads), maxLoads)], own}
}

// pages are the page sizes of Linux.
var pages = [...]uint64{4 << 10, 16 << 10, 64 << 10}

func isCode(s *object.Segment) bool { return s.Flags&elf.PF_X != 0 }

// Relative returns the link-time address of an address in a mapping. In a mapping that starts
// at 0, addresses are link-time addresses already, since no process has code there.
func (f *File) Relative(m Range, addr uint64) (uint64, error) {
	if m.Start == 0 {
		return addr, nil
	}
	if !m.Has(addr) {
		return 0, ErrOutside
	}
	if m.Start >= kernelStart && (m.Offset == 0 || m.Offset == m.Start) {
		return f.inKernel(m, addr)
	}
	offset := addr - m.Start + m.Offset
	bytes := false // a code segment has bytes in the file
	for i := range f.loads {
		l := &f.loads[i]
		if !isCode(l) {
			continue
		}
		if l.FileSize < l.MemSize && !f.own {
			continue // a debug file may keep the first bytes of its code's segment
		}
		if offset-l.Offset < l.FileSize {
			return offset - l.Offset + l.Addr, nil
		}
		bytes = true
	}
	if bytes {
		return 0, ErrOutside
	}
	return f.withoutOffsets(m, addr)
}

// kernelStart is the lowest address of Linux's kernel on machines with 64 bits.
const kernelStart = 1 << 63

// inKernel is Relative for a kernel, which is not a mapped file. In perf's output, the start of the
// mapping is the address of _text after KASLR, where the code of vmlinux begins. The offset of the
// mapping is 0 or the same address.
func (f *File) inKernel(m Range, addr uint64) (uint64, error) {
	first := slices.IndexFunc(f.loads, func(l object.Segment) bool { return isCode(&l) && l.Addr >= kernelStart })
	if first < 0 {
		return 0, ErrOffsets
	}
	rel := addr - m.Start + f.loads[first].Addr
	if !slices.ContainsFunc(f.loads[first:], func(l object.Segment) bool { return isCode(&l) && rel-l.Addr < l.MemSize }) {
		return 0, ErrOutside
	}
	return rel, nil
}

// withoutOffsets is Relative for a debug file made by objcopy --only-keep-debug. The segments of
// such a file have addresses and sizes in memory, but no usable offsets.
func (f *File) withoutOffsets(m Range, addr uint64) (uint64, error) {
	if len(f.loads) == 0 {
		return 0, ErrOffsets
	}
	first := &f.loads[0]
	last := &f.loads[len(f.loads)-1]
	size := m.Limit - m.Start
	for _, page := range pages {
		low := first.Addr &^ (page - 1)
		for i := range f.loads {
			l := &f.loads[i]
			if !isCode(l) {
				continue
			}
			start := l.Addr &^ (page - 1)
			end := (l.Addr + l.MemSize + page - 1) &^ (page - 1)
			// m may map the whole segment, or all of the file. In a file by GNU ld, the offset of m
			// may also equal the segment's distance from the first segment in memory.
			if size == end-start || m.Offset == start-low && m.Offset != 0 || m.Offset == 0 && size >= last.Addr-low {
				from := start
				if m.Offset == 0 && size >= last.Addr-low {
					from = low
				}
				if rel := addr - m.Start + from; rel-l.Addr < l.MemSize {
					return rel, nil
				}
			}
		}
	}
	return 0, ErrOffsets
}

// Fits reports whether m may be a mapping of the file. m must cover one segment with code, or
// exactly the range from the first segment with code to the last. If a producer may have joined
// mappings, m may be larger, but must not end after the file's last segment.
func (f *File) Fits(m Range, joined bool) bool {
	size := m.Limit - m.Start
	for _, page := range pages {
		// offsets rounded to whole pages: where the code begins (from) and ends (to), and where the
		// last segment ends
		var from, to, end uint64
		none := true
		for i := range f.loads {
			l := &f.loads[i]
			if l.FileSize == 0 || max(l.Offset, l.FileSize) > 1<<62 {
				continue
			}
			start, stop := l.Offset&^(page-1), (l.Offset+l.FileSize+page-1)&^(page-1)
			end = max(end, stop)
			if !isCode(l) {
				continue
			}
			if start == m.Offset && stop-start == size {
				return true
			}
			if none {
				from, none = start, false
			}
			to = max(to, stop)
		}
		if none {
			return false
		}
		if m.Offset == from && size == to-from {
			return true
		}
		if joined && m.Offset <= from && m.Offset+size >= to && m.Offset+size <= end {
			return true
		}
	}
	return false
}
