package callgrind

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// objects are the files of a profile's objects.
type objects struct {
	o      *Options
	r      *Reader
	byName map[Name]*objectFile
	opened int
}

// An objectFile is the file of an object, as it is on this machine.
type objectFile struct {
	name  string // in the profile
	path  string // here
	id    buildid.ID
	err   error // why nothing is known of it
	code  []object.Segment
	loads []object.Segment
	first time.Time // when it was named first: the wait for its debug file counts from there

	asked   int // addresses
	outside int // of them, not in its code
	failed  error
}

// of returns the file of an object; nil if it can have none.
func (all *objects) of(n Name) *objectFile {
	f, ok := all.byName[n]
	if ok {
		return f
	}
	if all.byName == nil {
		all.byName = make(map[Name]*objectFile)
	}
	name := all.r.Text(n)
	if name != "" && name != unknown && len(name) <= maxPath {
		f = &objectFile{name: name, path: all.o.located(name), first: time.Now()}
		f.err = all.open(f)
	}
	if len(all.byName) < maxFunctions {
		all.byName[n] = f
	}
	return f
}

// open reads what identifies the file, and starts to look for its debug file.
func (all *objects) open(f *objectFile) error {
	if all.o.NoPaths {
		return fmt.Errorf("%s: not opened (--no-paths)", f.path)
	}
	if !filepath.IsAbs(f.path) {
		return fmt.Errorf("%s: no absolute path", f.path)
	}
	if all.opened >= maxObjects {
		return fmt.Errorf("%s: not opened: the profile names more than %d objects", f.path, maxObjects)
	}
	all.opened++
	file, err := buildid.OpenRegular(f.path, "the profile")
	if err != nil {
		if e := (*fs.PathError)(nil); errors.As(err, &e) {
			err = fmt.Errorf("%s: %w", f.path, e.Err)
		}
		return err
	}
	defer file.Close()
	image, err := object.Open(file, file.Size(), nil) // headers only
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	defer image.Close()
	f.id, _ = buildid.Read(file, file.Size())
	for _, s := range image.Segments() {
		if s.Type != elf.PT_LOAD || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr {
			continue
		}
		f.loads = append(f.loads, s)
		if s.Flags&elf.PF_X != 0 {
			f.code = append(f.code, s)
		}
	}
	if len(f.code) == 0 {
		return fmt.Errorf("%s: it has no code", f.path)
	}
	if all.o.Symbolizer != nil {
		all.o.Symbolizer.Prefetch(f.id, f.path)
	}
	return nil
}

// located returns where the file of this name is on this machine.
func (o *Options) located(name string) string {
	return buildid.PrefixMaps(o.PrefixMap).Place(name, o.Sysroot)
}

// covers reports whether addr is in the file's code.
func (f *objectFile) covers(addr uint64) bool {
	for i := range f.code {
		if s := &f.code[i]; addr-s.Addr < s.MemSize {
			return true
		}
	}
	return false
}

// frames appends what is known of addr to dst, innermost first.
func (all *objects) frames(dst []symbolize.Frame, f *objectFile, addr uint64) []symbolize.Frame {
	if f == nil || f.err != nil || all.o.Symbolizer == nil {
		return dst
	}
	f.asked++
	if !f.covers(addr) {
		f.outside++
		return dst
	}
	l := symbolize.Location{ID: f.id, Name: f.path, Addr: addr}
	if frames, ok := all.o.Symbolizer.AtOnce(dst, l); ok {
		return frames
	}
	ctx, cancel := context.WithDeadline(all.o.context(), f.first.Add(all.o.Wait))
	frames, err := all.o.Symbolizer.Code(ctx, dst, l)
	cancel()
	if err != nil && f.failed == nil {
		f.failed = err
	}
	if len(frames) > len(dst)+maxInline {
		frames = frames[:len(dst)+maxInline]
	}
	return frames
}

// tell tells of files that are missing, or of other builds than those that ran.
func (all *objects) tell(unresolved []Unresolved) {
	for _, u := range unresolved {
		if u.Err != nil && u.ID.IsZero() {
			all.o.diagnose(fmt.Sprintf("%v; %s without a name in it", u.Err, functions(u.Functions)))
		}
	}
	told := 0
	for _, n := range slices.Sorted(maps.Keys(all.byName)) {
		if f := all.byName[n]; f != nil && f.outside > 0 && told < maxTold {
			told++
			all.o.diagnose(fmt.Sprintf("%s: %d of %d addresses are not in its code; it is another build than the one that ran", f.path, f.outside, f.asked))
		}
	}
}

func functions(n int) string {
	if n == 1 {
		return "1 function"
	}
	return fmt.Sprintf("%d functions", n)
}
