package object

import (
	"debug/elf"
	"slices"
)

// All sections of an object file begin at address 0. Each section with code, except the first, gets
// addresses of its own, above relocatedBase. So each function has its own address, as after
// linking.
const (
	relocatedBase32 = 1 << 31
	relocatedBase64 = 1 << 40
	relocatedAlign  = 4096 // bytes
)

// placeSections gives each section with code of an object file, except the first, addresses of its
// own.
func (h *headers) placeSections() {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	own := func(s Section) bool { return s.Flags&code == code && s.Size > 0 }
	if h.Type != elf.ET_REL || slices.ContainsFunc(h.sections, func(s Section) bool { return own(s) && s.Addr != 0 }) {
		return // linked, or not written by a compiler
	}
	base := uint64(relocatedBase64)
	if !h.is64 {
		base = relocatedBase32
	}
	next, first := base, true
	for i := range h.sections {
		s := &h.sections[i]
		switch {
		case !own(*s):
		case first:
			first = false
		case s.Size > base-relocatedAlign || next > 2*base-s.Size-relocatedAlign:
			return // hostile
		default:
			s.Addr = next
			next = (next + s.Size + relocatedAlign - 1) &^ (relocatedAlign - 1)
			h.placed = true
		}
	}
}

// Placed reports whether placeSections gave sections addresses that are not in the file: see
// [File.Place].
func (h *headers) Placed() bool { return h.placed }

// Place returns the address that placeSections gave to the code at addr in an object file. As in
// llvm-symbolizer, an address within several sections belongs to the first section with code that
// is long enough. Place returns addresses in other files, and addresses that were placed already,
// unchanged.
func (h *headers) Place(addr uint64) uint64 {
	if !h.placed {
		return addr
	}
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	for i := range h.sections {
		if s := &h.sections[i]; s.Flags&code == code && addr < s.Size {
			return s.Addr + addr
		}
	}
	return addr
}
