package object

import (
	"debug/elf"
	"fmt"
	"os"
)

// DataOf is [File.Data] for the section at index i of [File.Sections]. Files that were not linked
// have several sections of one name, which the linker would join or choose from: those of groups.
func (f *File) DataOf(i int) (data []byte, err error) {
	s := &f.sections[i]
	name := s.Name
	if f.closed {
		return nil, fmt.Errorf("section %s: %w", name, os.ErrClosed)
	}
	if f.section(name) == s {
		return f.Data(name)
	}
	if s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	key := fmt.Sprintf("%s, number %d", name, i)
	if k, ok := f.kept[key]; ok {
		return k.data, k.err
	}
	if f.relocates(name, s) {
		return f.keep(key, f.relocated(s, isLegacy(name, s)))
	}
	return f.sectionData(key, s, isLegacy(name, s))
}
