package rtrace

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/report"
)

// A file is an object file at the place where a report says that it was.
type file struct {
	*report.Object
	parts  []object.Segment // that a mapping may be of, by address
	shown  bool             // as a module
	number uint64           // of the module
}

// newFile returns the file of an object.
func newFile(o *report.Object) *file {
	f := &file{Object: o}
	for _, s := range o.Loads {
		if s.FileSize != 0 && s.MemSize >= s.FileSize && max(s.Addr, s.Offset, s.MemSize) < 1<<62 {
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

// fits returns the link-time addresses that the start of a mapping may have, one
// for each segment that it may be of. The kernel maps whole pages; of which size
// they were, the report does not say. Where all that can be read can be executed,
// segments that follow each other in the file are one mapping.
func (f *file) fits(from, to uint64) (all []uint64) {
	size := (to - from + pages[0] - 1) &^ (pages[0] - 1) // some write the last address instead of the end
	for _, page := range pages {
		if from%page != 0 {
			break
		}
		for n := 1; n <= len(f.parts) && len(all) == 0; n++ {
			for i := range f.parts[n-1:] {
				first, last := &f.parts[i], &f.parts[i+n-1]
				rel := first.Addr &^ (page - 1)
				if f.Fixed && rel != from || !slices.ContainsFunc(f.parts[i:i+n], isCode) || last.Addr-first.Addr != last.Offset-first.Offset {
					continue
				}
				if size == (last.Addr+last.FileSize+page-1)&^(page-1)-rel || size == (last.Addr+last.MemSize+page-1)&^(page-1)-rel {
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

// size returns how many bytes a mapping of the file's code has, for people.
func (f *file) size() uint64 {
	s := &f.parts[slices.IndexFunc(f.parts, isCode)]
	return (s.Addr+s.FileSize+pages[0]-1)&^(pages[0]-1) - s.Addr&^(pages[0]-1)
}
