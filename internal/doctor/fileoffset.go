package doctor

import (
	"debug/elf"
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

const maxShownSegments = 8

// A PlaceError reports that a file lacks a requested name or offset.
type PlaceError string

func (e PlaceError) Error() string { return string(e) }

// NoName returns the error for a name that is missing in the subject's file.
func (s *Subject) NoName(sym *symbolize.Symbolizer, name string) error {
	r := sym.Report(s.ID, s.Path)
	path := r.Path
	if path == s.Path {
		path = s.Word
	}
	return PlaceError(fmt.Sprintf("no symbol %s in %s (%s)", name, path, r.Holds))
}

// A segments has the parts of a file that a process maps.
type segments struct {
	loaded []object.Segment
	err    error // why offsets in the file have no addresses
}

// AddressAt returns the address at an offset in the file of the subject, by its program headers. If
// several segments cover the offset, it uses the first segment with code or, without one, the first
// segment. AddressAt must be called after Examine.
func (s *Subject) AddressAt(offset uint64) (uint64, error) {
	if s.segments == nil {
		s.segments = new(segments)
		s.segments.read(s)
	}
	if err := s.segments.err; err != nil {
		return 0, err
	}
	var best *object.Segment
	for i := range s.segments.loaded {
		p := &s.segments.loaded[i]
		if offset >= p.Offset && offset-p.Offset < p.FileSize && (best == nil || best.Flags&elf.PF_X == 0 && p.Flags&elf.PF_X != 0) {
			best = p
		}
	}
	if best == nil {
		return 0, PlaceError(fmt.Sprintf("no segment of %s covers the offset 0x%x: %s", s.Word, offset, s.segments))
	}
	return best.Addr + (offset - best.Offset), nil
}

// String lists the offsets that segments cover.
func (s *segments) String() string {
	var all []string
	for _, p := range s.loaded {
		if p.FileSize == 0 {
			continue
		}
		if len(all) == maxShownSegments {
			all = append(all, "…")
			break
		}
		all = append(all, fmt.Sprintf("0x%x-0x%x", p.Offset, p.Offset+p.FileSize))
	}
	return "they cover " + strings.Join(all, ", ")
}

func (s *segments) read(of *Subject) {
	if of.Path == "" {
		s.err = PlaceError("offsets are positions in the program, but a build ID finds only its debug file: write the path of the program")
		return
	}
	file, err := buildid.OpenRegular(of.Path, "the command line")
	if err != nil {
		s.err = fmt.Errorf("open %s: %w", of.Word, wording.Cause(err))
		return
	}
	defer file.Close()
	obj, err := object.Open(file, file.Size(), nil)
	if err != nil {
		s.err = fmt.Errorf("%s: %w", of.Word, err)
		return
	}
	defer obj.Close()
	for _, p := range obj.Segments() {
		if p.Type == elf.PT_LOAD {
			s.loaded = append(s.loaded, p)
		}
	}
	if len(s.loaded) == 0 {
		s.err = PlaceError(of.Word + " was not linked, so it has no segments, and its offsets have no addresses")
		return
	}
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	for _, section := range obj.Sections() {
		if section.Type == elf.SHT_NOBITS && section.Flags&code == code {
			s.err = PlaceError(of.Word + " is a debug file, whose offsets differ from the program's: write the path of the program")
			return
		}
	}
}
