package object

import (
	"cmp"
	"debug/elf"
	"slices"
)

// The sections of an object file that was not linked all begin at address 0. As in llvm-symbolizer,
// an address belongs to the first section with code that is long enough, and debug information
// about the other sections' code is no answer for it.

// A Place is a field that holds an address in a section with code. Lookups in [Lo,Hi), which may be
// empty, belong to that section.
type Place struct {
	Off    uint64 // bytes from the start of its section
	Lo, Hi uint64
}

// Places returns the fields of the section name that are relocated to sections with code, in order;
// nil if the file was linked, if its sections with code do not overlap, or if there are more than
// maxPlaces fields.
func (f *File) Places(name string) []Place {
	if f.Type != elf.ET_REL {
		return nil
	}
	s := f.section(name)
	if s == nil || !f.relocates(name, s) {
		return nil
	}
	own, overlap := f.ownAddresses()
	if !overlap {
		return nil
	}
	var places []Place
	err := f.eachRelocation(f.relocations(s), func(r *fieldRelocation) {
		if relocationOf(f.Machine, r.kind).bytes == 0 {
			return
		}
		if at, ok := own[r.section]; ok && len(places) <= maxPlaces {
			places = append(places, Place{r.off, at.Lo, at.Hi})
		}
	})
	if err != nil || len(places) > maxPlaces {
		return nil
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.Off, b.Off) })
	return slices.Clip(slices.CompactFunc(places, func(a, b Place) bool { return a.Off == b.Off }))
}

// ownAddresses returns the addresses that belong to each section with code, and whether a section
// lacks some of its own.
func (f *File) ownAddresses() (own map[int]Place, overlap bool) {
	own = make(map[int]Place)
	var taken uint64 // all sections begin at 0: addresses below belong to earlier sections
	for i := range f.sections {
		s := &f.sections[i]
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		if s.Addr != 0 { // not written by a compiler
			return nil, false
		}
		own[i] = Place{Lo: taken, Hi: max(taken, s.Size)}
		overlap = overlap || taken > 0 && s.Size > 0
		taken = max(taken, s.Size)
	}
	return own, overlap
}
