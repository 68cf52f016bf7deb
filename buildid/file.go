package buildid

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/symfilter/symfilter/internal/object"
)

// A Kind says what a file is wanted for.
type Kind uint8

// The kinds of file that one build ID may name.
const (
	Debug      Kind = iota // debug information or at least a full symbol table
	Executable             // the code itself
	Alt                    // the supplementary file that dwz makes, which has an ID of its own
)

// A Query is what a finder looks for.
type Query struct {
	ID   ID
	Kind Kind
	Name string // of the module, as logged: hostile, and only [ModulePath] reads it

	// Better says that a file without debug information is at hand already: who would have to ask a server for the
	// program itself need not.
	Better bool
}

// An Attempt is a place where a finder looked in vain, and what it found there instead. Where may hold the name of a
// module as it was logged: escape it before printing.
type Attempt struct {
	Where, Said string
}

// A File is an open file whose build ID was found to be the one asked for, through this same descriptor. The caller
// closes it.
type File struct {
	r          io.ReaderAt
	size       int64
	path       string
	where      string
	os         *os.File
	closer     io.Closer
	unverified bool
}

// Open opens the file at path if it is a regular ELF file whose note holds id. It never blocks on a FIFO or a device.
// where is kept for [File.Where]. The error wraps [fs.ErrNotExist] where there is no such file, [ErrNoID] or [ErrOtherID]
// where there is another, and otherwise what the system or the reader of the headers said.
func Open(path, where string, id ID) (*File, error) {
	f, err := open(path, where, id)
	if err != nil {
		return nil, fmt.Errorf("build ID %s: %w", id, err)
	}
	if f.unverified {
		f.Close()
		return nil, fmt.Errorf("build ID %s: %s: %w", id, path, ErrNoID)
	}
	return f, nil
}

// OpenRegular opens the file at path if it is a regular one, whatever it holds: the caller checks that it is the one meant, by its
// dwo_id, its checksum or its ID. It never blocks on a FIFO or a device. where is kept for [File.Where]. The error wraps [fs.ErrNotExist] where
// there is no such file.
func OpenRegular(path, where string) (*File, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return &File{r: f, size: size, path: path, where: where, os: f, closer: f}, nil
}

// OpenBelow is OpenRegular for a file at name, a path below root: no link leads out of it.
func OpenBelow(root *os.Root, name, where string) (*File, error) {
	f, size, err := openRegularBy(name, root.Stat, root.OpenFile)
	if err != nil {
		return nil, err
	}
	return &File{r: f, size: size, path: filepath.Join(root.Name(), name), where: where, os: f, closer: f}, nil
}

// NewFile returns a File of size bytes read from r whose build ID the caller has checked: the member of an archive. Close
// closes closer, if that is not nil.
func NewFile(r io.ReaderAt, size int64, path, where string, closer io.Closer) *File {
	return &File{r: r, size: size, path: path, where: where, closer: closer}
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.r.ReadAt(p, off) }

// Size returns the size in bytes that the file had when it was opened.
func (f *File) Size() int64 { return f.size }

// Path returns the path that was opened.
func (f *File) Path() string { return f.path }

// OS returns the open file itself, to be mapped, or nil where there is none. It stays owned by f.
func (f *File) OS() *os.File { return f.os }

// Where says which finder the file is from.
func (f *File) Where() string { return f.where }

// Unverified reports whether the file has no note to check: it was taken for its place in a tree that the operator named.
func (f *File) Unverified() bool { return f.unverified }

// Close closes the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// ErrNoID is returned for an ELF file that has no build ID.
var ErrNoID = errors.New("there is no build ID in it")

// ErrOtherID is wrapped by the error about a file that is another build.
var ErrOtherID = errors.New("another build ID")

// An UnusableError says that a file lies where the one asked for should, and is none that can be read. It is a miss as well: it wraps
// [fs.ErrNotExist].
type UnusableError struct {
	Path string
	Err  error // what was wrong with it
}

func (e *UnusableError) Error() string { return e.Path + ": " + said(e.Err) }

// Unwrap returns fs.ErrNotExist and what was wrong with the file.
func (e *UnusableError) Unwrap() []error { return []error{fs.ErrNotExist, e.Err} }

// unusable reports whether err of open is about a file that is there and is no ELF file, or not even a regular one.
func unusable(err error) bool {
	var format *object.FormatError
	var limit *object.LimitError
	return errors.As(err, &format) || errors.As(err, &limit) || errors.Is(err, errNotRegular)
}

// An otherIDError is an ErrOtherID with the IDs.
type otherIDError struct{ got, want ID }

func (e *otherIDError) Error() string {
	return fmt.Sprintf("its build ID is %s, not %s", e.got, e.want)
}
func (e *otherIDError) Unwrap() error { return ErrOtherID }

// Read returns the build ID of the ELF file of size bytes behind r, from its notes, with a few small reads.
// It returns [ErrNoID] when the file has none.
func Read(r io.ReaderAt, size int64) (ID, error) {
	raw, err := object.BuildID(r, size)
	if errors.Is(err, object.ErrNoBuildID) {
		return ID{}, ErrNoID
	}
	if err != nil {
		return ID{}, err
	}
	return FromBytes(raw)
}

// errNotRegular is about directories, FIFOs, sockets and devices.
var errNotRegular = errors.New("not a regular file")

// openRegular opens the regular file at path without blocking and without touching anything else that may lie there:
// opening a device can be an act (a watchdog starts to count), so it is asked for its type before and, for races, after.
func openRegular(path string) (*os.File, int64, error) {
	return openRegularBy(path, os.Stat, os.OpenFile)
}

func openRegularBy(path string, stat func(string) (fs.FileInfo, error), open func(string, int, fs.FileMode) (*os.File, error)) (*os.File, int64, error) {
	info, err := stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := open(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// open opens the file at path if its ID is id or it has none; the latter is marked as unverified.
func open(path, where string, id ID) (*File, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	got, err := Read(f, size)
	unverified := errors.Is(err, ErrNoID)
	switch {
	case unverified:
	case err != nil:
		f.Close()
		return nil, &fs.PathError{Op: "read build ID of", Path: path, Err: err}
	case got != id:
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: &otherIDError{got, id}}
	}
	return &File{r: f, size: size, path: path, where: where, os: f, closer: f, unverified: unverified}, nil
}
