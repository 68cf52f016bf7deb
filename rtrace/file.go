package rtrace

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// A file is an object file at the place where a report says that it was.
type file struct {
	path   string // as opened
	name   string // in the report
	id     buildid.ID
	err    error            // why it cannot be used
	loads  []object.Segment // that are loaded, by address
	fixed  bool             // it is loaded where it was linked
	shown  bool             // as a module
	number uint64           // of the module
}

// located returns where the file of this name is on this machine.
func (o *Options) located(name string) string {
	return buildid.PrefixMaps(o.PrefixMap).Place(name, o.Sysroot)
}

// mapped returns a name as the prefix map has it.
func (o *Options) mapped(name string) (string, bool) {
	return buildid.PrefixMaps(o.PrefixMap).Replace(name)
}

// open looks at the file that a report calls name: its ID, and where its code
// is. Nothing of it stays open.
func (o *Options) open(name string) *file {
	f := &file{name: name, path: o.located(name)}
	switch {
	case o.NoPaths:
		f.err = fmt.Errorf("%s: not opened (--no-paths)", f.path)
	case strings.HasSuffix(name, " (deleted)"):
		f.err = fmt.Errorf("%s: another file may have its name now", name)
	case !filepath.IsAbs(f.path) || len(f.path) > maxPath:
		f.err = fmt.Errorf("%.200q is no absolute path", f.path)
	default:
		f.err = f.read()
	}
	return f
}

func (f *file) read() error {
	opened, err := buildid.OpenRegular(f.path, "the report")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			if f.path == f.name {
				return fmt.Errorf("%s: there is no such file here; --sysroot says where files of another machine are", f.path)
			}
			return fmt.Errorf("%s: there is no such file", f.path)
		}
		return err
	}
	defer opened.Close()
	obj, err := object.Open(opened, opened.Size(), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	defer obj.Close()
	f.id, _ = buildid.Read(opened, opened.Size())
	f.fixed = obj.Type == elf.ET_EXEC
	for _, s := range obj.Segments() {
		if s.Type == elf.PT_LOAD && s.FileSize != 0 && s.MemSize >= s.FileSize && max(s.Addr, s.Offset, s.MemSize) < 1<<62 && len(f.loads) < maxSegments {
			f.loads = append(f.loads, s)
		}
	}
	if !slices.ContainsFunc(f.loads, isCode) {
		return fmt.Errorf("%s: it has no code", f.path)
	}
	slices.SortFunc(f.loads, func(a, b object.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	return nil
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
		for n := 1; n <= len(f.loads) && len(all) == 0; n++ {
			for i := range f.loads[n-1:] {
				first, last := &f.loads[i], &f.loads[i+n-1]
				rel := first.Addr &^ (page - 1)
				if f.fixed && rel != from || !slices.ContainsFunc(f.loads[i:i+n], isCode) || last.Addr-first.Addr != last.Offset-first.Offset {
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
	s := &f.loads[slices.IndexFunc(f.loads, isCode)]
	return (s.Addr+s.FileSize+pages[0]-1)&^(pages[0]-1) - s.Addr&^(pages[0]-1)
}
