package buildid

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/symfilter/symfilter/internal/object"
)

// A Kind is the purpose for which a file is wanted.
type Kind uint8

// kinds of files with a build ID
const (
	Debug      Kind = iota // debug information, or at least a full symbol table
	Executable             // the code itself
	Alt                    // the supplementary file made by dwz, which has another ID
)

// A Query describes a wanted file.
type Query struct {
	ID   ID
	Kind Kind
	Name string // name of the module, as logged: untrusted, and used by [ModulePath] only

	// Better means that a file without debug information is already found. A finder then need not
	// ask a server for the program itself.
	Better bool

	// Whole is the maximum size, in bytes, of a file that may be read into memory and closed; 0
	// allows no file. A finder may ignore Whole.
	Whole int64
}

// An Attempt is a place that a finder searched without success, with the reason. Where may hold a
// module's name from the log: escape it before printing.
type Attempt struct {
	Where, Reason string
}

// A File is an open file. A finder has checked its build ID through the same descriptor. The caller
// of the finder owns the File and closes it. It is safe for concurrent reads.
type File struct {
	r          io.ReaderAt
	size       int64
	path       string
	where      string
	os         *os.File
	closer     io.Closer
	unverified bool   // the file has no note to check; its path or a link to it was proof enough
	state      string // state of the compressed file with these contents, if os is nil
	whole      *whole // the contents of a small file that is closed; nil: read from r
}

// Open opens the file at path if it is a regular ELF file whose note holds id. It never blocks on a
// FIFO or a device. where is the result of [File.Where]. The error wraps [fs.ErrNotExist] if the
// file is missing, [ErrNoID] if it has no ID, and [ErrOtherID] if it has another ID. Other errors
// are from the system or the ELF parser.
func Open(path, where string, id ID) (*File, error) {
	f, err := open(path, where, id, 0)
	if err != nil {
		return nil, fmt.Errorf("build ID %s: %w", id, err)
	}
	if f.unverified {
		f.Close()
		return nil, fmt.Errorf("build ID %s: %s: %w", id, path, ErrNoID)
	}
	return f, nil
}

// OpenRegular opens the regular file at path, with any content. The caller checks its dwo_id,
// checksum or build ID. OpenRegular never blocks on a FIFO or a device. where is the result of
// [File.Where]. The error wraps [fs.ErrNotExist] if the file is missing.
func OpenRegular(path, where string) (*File, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return &File{r: f, size: size, path: path, where: where, os: f, closer: f}, nil
}

// openBelow is like OpenRegular, for the path name below root. It follows no link out of root.
func openBelow(root *os.Root, name, where string) (*File, error) {
	f, size, err := openRegularBy(name, root.Stat, root.OpenFile)
	if err != nil {
		return nil, err
	}
	return &File{r: f, size: size, path: filepath.Join(root.Name(), name), where: where, os: f, closer: f}, nil
}

// NewFile returns a File of size bytes in r, such as a member of an archive. If r is an [*os.File],
// it can be mapped. The caller has checked the build ID through r. [File.Close] closes closer
// unless that is nil. It does not close r itself.
func NewFile(r io.ReaderAt, size int64, path, where string, closer io.Closer) *File {
	f, _ := r.(*os.File)
	return &File{r: r, size: size, path: path, where: where, os: f, closer: closer}
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if f.whole != nil {
		return bytes.NewReader(f.whole.data).ReadAt(p, off)
	}
	return f.r.ReadAt(p, off)
}

// contents returns the contents of a file that was read whole, otherwise nil. They are valid until
// Close.
func (f *File) contents() []byte {
	if f.whole == nil {
		return nil
	}
	return f.whole.data
}

// modified returns the time of the last change, in nanoseconds since 1970. ok is false unless f is
// a regular file of the system.
func (f *File) modified() (nanoseconds int64, ok bool) {
	switch {
	case f.whole != nil:
		return f.whole.state.mtime, true
	case f.os == nil:
		return 0, false
	}
	info, err := f.os.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.ModTime().UnixNano(), true
}

// Size returns the size of the file in bytes when it was opened.
func (f *File) Size() int64 { return f.size }

// stateText returns the inode, size and time of f, or of the compressed file that f was unpacked
// from. The text changes if that file is replaced or written to. It is empty if there is no such
// file.
func (f *File) stateText() string {
	switch {
	case f.whole != nil:
		return f.whole.state.text()
	case f.os == nil:
		return f.state
	}
	info, err := f.os.Stat()
	if err != nil {
		return ""
	}
	return stateOf(info).text()
}

func (s state) text() string { return fmt.Sprintf("%d-%d-%d", s.inode, s.size, s.mtime) }

// Path returns the path that was opened.
func (f *File) Path() string { return f.path }

// OS returns the open file, which can be mapped, or nil. f remains the owner: the caller must not
// close the file.
func (f *File) OS() *os.File { return f.os }

// Where returns the name of the finder that found the file.
func (f *File) Where() string { return f.where }

// Close closes the file.
func (f *File) Close() error {
	if f.whole != nil {
		f.whole.free()
	}
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// ErrNoID is returned for an ELF file that has no build ID.
var ErrNoID = errors.New("the file has no build ID")

// ErrOtherID is wrapped by the error for a file that has another build ID.
var ErrOtherID = errors.New("another build ID")

// An UnusableError reports that the file at the expected place is not a usable ELF file. Since that
// is a miss, it wraps [fs.ErrNotExist].
type UnusableError struct {
	Path string
	Err  error // why the file cannot be used
}

func (e *UnusableError) Error() string { return e.Path + ": " + reasonFor(e.Err) }

// Unwrap returns fs.ErrNotExist and Err.
func (e *UnusableError) Unwrap() []error { return []error{fs.ErrNotExist, e.Err} }

// unusable reports whether err, an error of open, means that the file exists, but is not a usable
// ELF file.
func unusable(err error) bool {
	var format *object.FormatError
	var limit *object.LimitError
	return errors.As(err, &format) || errors.As(err, &limit) || errors.Is(err, errNotRegular)
}

// An otherIDError is an ErrOtherID with both IDs.
type otherIDError struct{ got, want ID }

func (e *otherIDError) Error() string {
	return fmt.Sprintf("its build ID is %s, not %s", e.got, e.want)
}
func (e *otherIDError) Unwrap() error { return ErrOtherID }

// Read returns the build ID in the notes of the ELF file of size bytes in r. It makes only a few
// small reads. It returns [ErrNoID] if the file has none.
func Read(r io.ReaderAt, size int64) (ID, error) {
	return idOf(object.BuildID(r, size))
}

func idOf(raw []byte, err error) (ID, error) {
	if errors.Is(err, object.ErrNoBuildID) {
		return ID{}, ErrNoID
	}
	if err != nil {
		return ID{}, err
	}
	return FromBytes(raw)
}

// errNotRegular is the error for directories, FIFOs, sockets and devices.
var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file, and does not block. It checks the type first, since opening a
// device can have an effect, such as starting a watchdog. It checks the type again after opening,
// in case the file was replaced.
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

// open opens the file at path if its ID is id. It also opens a file without an ID, which it marks
// as unverified. A file of at most whole bytes is read into memory and closed.
func open(path, where string, id ID, whole int64) (*File, error) {
	f, err := openWhole(path, where, whole)
	if err == nil && f == nil {
		f, err = openUnpacked(path, where)
	}
	if err != nil {
		return nil, err
	}
	got, err := f.readID()
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
	f.unverified = unverified
	return f, nil
}

// openWhole reads the file at path if it has at most limit bytes. It returns nil for larger files
// and for compressed modules.
func openWhole(path, where string, limit int64) (*File, error) {
	if limit == 0 || isPackedModule(path) {
		return nil, nil
	}
	w, ok, err := readWhole(path, limit)
	if !ok {
		return nil, err
	}
	return &File{size: int64(len(w.data)), path: path, where: where, whole: &w}, nil
}

func (f *File) readID() (ID, error) {
	if f.whole == nil {
		return Read(f, f.size)
	}
	return idOf(object.BuildIDOf(f.whole.data))
}
