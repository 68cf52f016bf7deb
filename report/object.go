package report

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxPath     = 4096 // bytes of a path: PATH_MAX
	maxSegments = 1024 // loaded segments of a file; linkers make ten
)

// Why an object file that a report names cannot be used.
var (
	ErrNoFile  = errors.New("no such file here; --sysroot names the folder of files from another machine")
	ErrNoPaths = errors.New("not opened (--no-paths)")
	ErrNoPath  = errors.New("not an absolute path")
	ErrDeleted = errors.New("deleted while the program ran; another file may have its name now")
	ErrNoCode  = errors.New("no code in it")
	ErrTooMany = errors.New("not opened: the report names too many files")
)

// Objects are the object files that a report names, each looked at once.
type Objects struct {
	o    *Options
	most int  // files that are opened
	keep bool // they stay open
	all  map[string]*Object
}

// An Object is the object file of a name in a report, as it is on this machine.
type Object struct {
	Name  string // in the report
	Path  string // on this machine
	ID    buildid.ID
	Err   error            // why the file cannot be used, without its path; nil if it can
	Fixed bool             // it is loaded where it was linked (ET_EXEC)
	Loads []object.Segment // that are loaded, in the file's order
	Code  []object.Segment // of Loads, that are executable

	// Image is the open file, mapped, if the Objects keep files open and Err is nil. Whatever reads
	// its contents does so within [object.Guard].
	Image *object.File

	file    *buildid.File // of Image
	awaited *Awaited      // nil before its debug file is asked for
}

// NewObjects returns the Objects of a report, of which most at most are opened. If keep is set, the
// files stay open until Close.
func NewObjects(o *Options, most int, keep bool) *Objects {
	return &Objects{o: o, most: most, keep: keep}
}

// Close closes the files that are open, and forgets all.
func (all *Objects) Close() {
	for _, f := range all.all {
		f.close()
	}
	all.all = nil
}

// Named returns the Object that the report calls name. The file's headers are read at the first
// call.
func (all *Objects) Named(name string) *Object {
	f := all.all[name]
	if f != nil {
		return f
	}
	f = &Object{Name: name, Path: all.o.Place(name)}
	if len(all.all) >= all.most {
		f.Err = ErrTooMany
		return f
	}
	if all.all == nil {
		all.all = make(map[string]*Object)
	}
	all.all[name] = f
	if all.o.NoPaths {
		f.Err = ErrNoPaths
	} else if f.Err = f.open(); f.Err == nil {
		if err := object.Guard(func() { f.Err = f.read() }); err != nil {
			f.Err = err
		}
	}
	if f.Err != nil || !all.keep {
		f.close()
	}
	return f
}

// Each calls visit for each Object so far, in no order.
func (all *Objects) Each(visit func(*Object)) {
	for _, f := range all.all {
		visit(f)
	}
}

// open opens the file if it is a regular one: without blocking, whatever else has the name.
func (f *Object) open() (err error) {
	if strings.HasSuffix(f.Name, " (deleted)") { // so the kernel marks it in /proc/PID/maps
		return ErrDeleted
	}
	if !filepath.IsAbs(f.Path) || len(f.Path) > maxPath {
		return ErrNoPath
	}
	if f.file, err = buildid.OpenRegular(f.Path, "the report"); err != nil {
		return withoutPath(err)
	}
	f.Image, err = object.Open(f.file, f.file.Size(), f.file.OS())
	return err
}

// read reads what identifies the file and where its code is.
func (f *Object) read() error {
	f.ID, _ = buildid.Read(f.file, f.file.Size())
	f.Fixed = f.Image.Type == elf.ET_EXEC
	for _, s := range f.Image.Segments() {
		if s.Type != elf.PT_LOAD || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr || len(f.Loads) == maxSegments {
			continue
		}
		f.Loads = append(f.Loads, s)
		if s.Flags&elf.PF_X != 0 {
			f.Code = append(f.Code, s)
		}
	}
	if len(f.Code) == 0 {
		return ErrNoCode
	}
	return nil
}

// close closes the file; what was read of it stays.
func (f *Object) close() {
	if f.Image != nil {
		f.Image.Close()
	}
	if f.file != nil {
		f.file.Close()
	}
	f.Image, f.file = nil, nil
}

// withoutPath returns why a file could not be opened.
func withoutPath(err error) error {
	var system *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoFile
	case errors.As(err, &system):
		return system.Err
	}
	return err
}

// Fault returns f.Err with the path, or nil.
func (f *Object) Fault() error {
	if f.Err == nil {
		return nil
	}
	return fmt.Errorf("%.200s: %w", f.Path, f.Err)
}

// Covers reports whether a segment has the module-relative address addr.
func Covers(segments []object.Segment, addr uint64) bool {
	for i := range segments {
		if s := &segments[i]; addr-s.Addr < s.MemSize {
			return true
		}
	}
	return false
}

func (f *Object) location(rel uint64) symbolize.Location {
	return symbolize.Location{ID: f.ID, Name: f.Path, Addr: rel}
}

// Files finds object files without a build ID: by their path, which an [Asker] gives to the
// symbolizer as their name. It is a finder for Options.Symbolizer.
type Files struct{}

// Find returns the file at q.Name, if q has no ID and that is the absolute path of a regular file.
func (Files) Find(_ context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if !q.ID.IsZero() || !filepath.IsAbs(q.Name) {
		return nil, fs.ErrNotExist
	}
	f, err := buildid.OpenRegular(q.Name, "the report")
	if err != nil && note != nil && !errors.Is(err, context.Canceled) {
		note(buildid.Attempt{Where: q.Name, Said: err.Error()})
	}
	return f, err
}
