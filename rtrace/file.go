package rtrace

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
)

// A file is an object file that a report names.
type file struct {
	*report.Object
	parts  []object.Segment // segments that may be mapped, sorted by address
	end    uint64           // link-time address after the last segment in memory
	shown  bool             // its module was rendered
	number uint64           // number of the module
}

func newFile(o *report.Object) *file {
	f := &file{Object: o}
	for _, s := range o.Loads {
		if s.MemSize < s.FileSize || max(s.Addr, s.Offset, s.MemSize) >= 1<<62 {
			continue
		}
		f.end = max(f.end, s.Addr+s.MemSize)
		if s.FileSize != 0 {
			f.parts = append(f.parts, s)
		}
	}
	if f.Err == nil && !slices.ContainsFunc(f.parts, isCode) {
		f.Err = report.ErrNoCode
	}
	slices.SortFunc(f.parts, func(a, b object.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	return f
}

func isCode(s object.Segment) bool { return s.Flags&elf.PF_X != 0 }

// fits returns the possible link-time addresses of a mapping's start. The mapping may have one
// segment, several adjacent segments, or the whole image, as some producers write. One of these
// segments must have code. The size of the mapping must be the size of these segments in whole
// pages. The report does not give the page size, so fits tries small pages first. For each page
// size, it tries few segments first.
func (f *file) fits(from, to uint64) (all []uint64) {
	// some producers write the last address instead of the end
	size := (to - from + pages[0] - 1) &^ (pages[0] - 1)
	for _, page := range pages {
		if from%page != 0 {
			break
		}
		for n := 1; n <= len(f.parts) && len(all) == 0; n++ {
			for i := range f.parts[n-1:] {
				first, last := &f.parts[i], &f.parts[i+n-1]
				rel := first.Addr &^ (page - 1)
				if f.Fixed && rel != from || !slices.ContainsFunc(f.parts[i:i+n], isCode) {
					continue
				}
				end := last.Addr + last.MemSize
				if n == len(f.parts) {
					end = max(end, f.end)
				} else if last.Addr-first.Addr != last.Offset-first.Offset {
					continue
				}
				if size == (last.Addr+last.FileSize+page-1)&^(page-1)-rel || size == (end+page-1)&^(page-1)-rel {
					all = append(all, rel)
				}
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// sizes returns the sizes in bytes that two mappings of the file would have, for messages. code is
// for its first segment with code, and image for the whole image.
func (f *file) sizes() (code, image uint64) {
	page := pages[0]
	s := &f.parts[slices.IndexFunc(f.parts, isCode)]
	return (s.Addr+s.FileSize+page-1)&^(page-1) - s.Addr&^(page-1), (f.end+page-1)&^(page-1) - f.parts[0].Addr&^(page-1)
}
