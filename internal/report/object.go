package report

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxPath     = 4096 // bytes of a path: Linux's PATH_MAX
	maxSegments = 1024 // loaded segments of a file; linkers make about ten
)

// Reasons why an object file in a report cannot be used.
var (
	ErrNoFile  = errors.New("no such file here; --sysroot names a folder with the files of another machine")
	ErrNoPaths = errors.New("not opened (--no-paths)")
	ErrNoPath  = errors.New("not an absolute path")
	ErrDeleted = errors.New("deleted while the program ran; a new file may have this path")
	ErrNoCode  = errors.New("the file has no code")
	ErrTooMany = errors.New("not opened: the report names too many files")
)

// An Objects opens the object files that a report names, each once. After Renew, it reads a changed
// file again.
type Objects struct {
	o      *Options
	most   int  // files that may be opened
	keep   bool // the files stay open
	all    map[string]*Object
	turn   int // calls of Renew so far
	opened int // number of opened files: see Work
	looked int
}

// An Object is an object file on this machine that a report names.
type Object struct {
	Name  string // name in the report
	Path  string // path of the file on this machine
	ID    buildid.ID
	Err   error            // why the file cannot be used, without its path; nil if usable
	Fixed bool             // the file is loaded at its link address (ET_EXEC)
	Loads []object.Segment // loaded segments, in the file's order
	Code  []object.Segment // executable segments of Loads
	// text that identifies the content of a file without a build ID, since the file may be
	// replaced: see NameOf
	State string

	// Image is the open file, mapped, if the Objects keep files open and Err is nil. Callers must
	// read its contents within [object.Guard].
	Image *object.File

	file    *buildid.File // file that Image maps
	state   string        // identifies the content of any file, as State does
	turn    int           // Objects.turn at the last check of the file
	awaited *Awaited      // set once the search for the debug file has begun
}

// NewObjects returns the Objects of a report. At most the given number of files are opened. If keep
// is set, the files stay open until Close.
func NewObjects(o *Options, most int, keep bool) *Objects {
	return &Objects{o: o, most: most, keep: keep}
}

// Close closes the open files and removes all Objects.
func (all *Objects) Close() {
	for _, f := range all.all {
		f.close()
	}
	all.all = nil
}

// Renew begins another report. Named then checks each file before it returns its Object, and
// reopens files that were replaced or could not be used. At most the given number of files stay
// open: the most recently used ones.
func (all *Objects) Renew(most int) {
	maps.DeleteFunc(all.all, func(_ string, f *Object) bool { return f.Err != nil })
	if len(all.all) > most {
		byUse := slices.SortedFunc(maps.Values(all.all), func(a, b *Object) int { return cmp.Compare(b.turn, a.turn) })
		for _, f := range byUse[most:] {
			f.close()
			delete(all.all, f.Name)
		}
	}
	all.turn++
}

// Work returns two counts. opened counts the files that were opened or could not be used. looked
// counts the missing files, and the checks for changes.
func (all *Objects) Work() (opened, looked int) { return all.opened, all.looked }

// Named returns the Object for a name in the report. Its first call for a name reads the file's
// headers.
func (all *Objects) Named(name string) *Object {
	f := all.all[name]
	if f != nil && f.turn != all.turn {
		f.turn = all.turn
		if all.looked++; f.changed() {
			f.close()
			delete(all.all, name)
			f = nil
		}
	}
	if f != nil {
		return f
	}
	f = &Object{Name: name, Path: all.o.Place(name), turn: all.turn}
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
	if f.Err == ErrNoFile {
		all.looked++
	} else {
		all.opened++
	}
	if f.Err != nil || !all.keep {
		f.close()
	}
	return f
}

// Changed checks up to the given number of files of the current report, chosen at random. It
// reports whether one was replaced or removed, or has appeared since it was searched for.
func (all *Objects) Changed(most int) bool {
	for _, f := range all.all {
		if f.turn != all.turn {
			continue // Named checks it before its next use
		}
		if most--; most < 0 {
			break
		}
		if f.Err != nil && f.Err != ErrNoFile {
			continue
		}
		if all.looked++; f.changed() {
			return true
		}
	}
	return false
}

// openers opens files of this machine, and returns the states of files. A state identifies a file's
// contents: see [access.BuildID].
type openers interface {
	OpenUnpacked(path, where string) (*buildid.File, error)
	StateOf(info fs.FileInfo) string
}

func files() openers { return access.BuildID(nil).(openers) }

// fileState returns the state of an open file. Another file at the same path has another state.
func fileState(f *buildid.File) string {
	return access.BuildID(f).(interface{ State() string }).State()
}

// changed reports whether the file was replaced or removed since it was opened, or has appeared
// since the search for it failed.
func (f *Object) changed() bool {
	info, err := os.Stat(f.Path)
	there := err == nil && info.Mode().IsRegular()
	return there && files().StateOf(info) != f.state || !there && f.Err == nil
}

// Each calls visit for each Object so far, in random order.
func (all *Objects) Each(visit func(*Object)) {
	for _, f := range all.all {
		visit(f)
	}
}

// open opens the file only if it is regular, so that a pipe or a device cannot block.
func (f *Object) open() (err error) {
	// the kernel's mark for deleted files in /proc/PID/maps
	if strings.HasSuffix(f.Name, " (deleted)") {
		return ErrDeleted
	}
	if !filepath.IsAbs(f.Path) || len(f.Path) > maxPath {
		return ErrNoPath
	}
	if f.file, err = files().OpenUnpacked(f.Path, "the report"); err != nil {
		return withoutPath(err)
	}
	f.Image, err = object.Open(f.file, f.file.Size(), f.file.OS())
	return err
}

// read reads the file's identity and its loaded segments. It fails if the file has no code.
func (f *Object) read() error {
	f.state = fileState(f.file)
	if f.ID, _ = buildid.Read(f.file, f.file.Size()); f.ID.IsZero() {
		f.State = f.state
	}
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
	if len(f.Code) == 0 && !isModule(f.Image) {
		return ErrNoCode
	}
	return nil
}

// isModule reports whether a file is an object file with code, such as a module of Linux. Object
// files have sections instead of segments.
func isModule(f *object.File) bool {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	return f.Type == elf.ET_REL && slices.ContainsFunc(f.Sections(), func(s object.Section) bool { return s.Flags&code == code && s.Size > 0 })
}

// close closes the file. The facts read from it remain.
func (f *Object) close() {
	if f.Image != nil {
		f.Image.Close()
	}
	if f.file != nil {
		f.file.Close()
	}
	f.Image, f.file = nil, nil
}

// withoutPath returns why a file could not be opened, without the path.
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

// Fault returns f.Err with the path of the file, or nil.
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

// Maps yields a markup element for each loaded segment of f, mapped with the given load bias.
// module is the module's number in the elements.
func (f *Object) Maps(module, bias uint64) iter.Seq[markup.MMap] {
	return func(yield func(markup.MMap) bool) {
		for i := range f.Loads {
			s := &f.Loads[i]
			m := markup.MMap{Addr: s.Addr + bias, Size: s.MemSize, Module: module, Rel: s.Addr}
			for flag, mode := range modes {
				if s.Flags&flag != 0 {
					m.Mode |= mode
				}
			}
			if !yield(m) {
				return
			}
		}
	}
}

var modes = map[elf.ProgFlag]markup.Mode{elf.PF_R: markup.Read, elf.PF_W: markup.Write, elf.PF_X: markup.Exec}

func (f *Object) location(rel uint64) symbolize.Location {
	return symbolize.Location{ID: f.ID, Name: f.Path, Addr: rel}
}

// NameOf returns the name of a file for a symbolizer that uses [Files]: its path, and its state, if
// any. A result for one state of a file is thus never used for another.
func NameOf(path, state string) string {
	if state == "" {
		return path
	}
	return path + symbolize.StateMark + state
}

var errReplaced = fmt.Errorf("%w: another file has this path now", fs.ErrNotExist)

// Files finds object files without a build ID. It is a finder for Options.Symbolizer. An [Asker]
// passes their path and state to the symbolizer as a name: see [NameOf].
type Files struct{}

// Find returns the file at q.Name, the absolute path of a regular file. A state in q.Name must be
// the file's. Find finds nothing if q has an ID.
func (Files) Find(_ context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	path, state, stated := strings.Cut(q.Name, symbolize.StateMark)
	if !q.ID.IsZero() || !filepath.IsAbs(path) {
		return nil, fs.ErrNotExist
	}
	f, err := files().OpenUnpacked(path, "the report")
	if err == nil && stated && fileState(f) != state {
		f.Close()
		f, err = nil, errReplaced
	}
	if err != nil && note != nil && !errors.Is(err, context.Canceled) {
		note(buildid.Attempt{Where: path, Reason: err.Error()})
	}
	return f, err
}
