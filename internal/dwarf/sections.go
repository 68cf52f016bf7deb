package dwarf

import (
	"fmt"
)

type section uint8

const (
	secInfo section = iota
	secAbbrev
	secLine
	secStr
	secLineStr
	secAranges
	secRanges
	secRnglists
	secAddr
	secStrOffsets
	secCUIndex // index of the units in a package
	secTypes   // type units, before version 5

	// sections of the supplementary file
	secAltInfo
	secAltStr
	secAltLineStr
	numSections
)

var sectionNames = [numSections]string{
	".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str", ".debug_aranges", ".debug_ranges",
	".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_cu_index", ".debug_types",
}

// altSections lists the sections of the supplementary file. The field id is a section's number in
// this Data. The field there is its number in the Data of that file.
var altSections = [...]struct{ id, there section }{{secAltInfo, secInfo}, {secAltStr, secStr}, {secAltLineStr, secLineStr}}

func thereOf(id section) section { return altSections[id-secAltInfo].there }

// sections holds the sections' bytes. Each section is loaded, and inflated if compressed, when it
// is first needed.
type sections struct {
	big      bool // byte order
	placed   bool // sections have addresses that the file does not have: see object.File.Place
	zeroCode bool // address 0 is code, not the mark of discarded code
	vars     varSections
	load     func(name string) ([]byte, error)
	data     [numSections][]byte
	loaded   [numSections]bool
	err      error // error of the first section that failed to load; such sections are empty

	alt *sections // sections of the supplementary file, or nil
	// sections of the file with the skeletons, if this file has split units; otherwise nil
	skeletons *sections
}

// name returns the name of a section, which ends in .dwo in a file of split units.
func (s *sections) name(id section) string {
	if s.skeletons != nil && id != secCUIndex {
		return sectionNames[id] + ".dwo"
	}
	return sectionNames[id]
}

func (s *sections) get(id section) []byte {
	if !s.loaded[id] {
		s.loaded[id] = true
		switch {
		case id >= secAltInfo:
			if s.alt != nil {
				s.data[id] = s.alt.get(thereOf(id))
			}
		case s.skeletons != nil && (id == secAddr || id == secRanges):
			s.data[id] = s.skeletons.get(id)
		case s.load != nil:
			data, err := s.load(s.name(id))
			if err != nil {
				if s.err == nil {
					s.err = fmt.Errorf("dwarf: %w", err) // the error names the section
				}
				data = nil
			}
			s.data[id] = data
		}
	}
	return s.data[id]
}

// A strRef is the position of a string in a section, without a pointer. The zero value means no
// string.
type strRef struct {
	off uint64
	sec section
	ok  bool
}
