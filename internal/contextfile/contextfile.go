// Package contextfile keeps the context of a stream in a small file, from which the next process
// that reads the stream continues. Only one process at a time can use a file. A file is replaced as
// a whole. A file that is not a context file is never changed.
package contextfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/newfile"
)

const (
	magic   = `{"symfilter_context":1,` // first bytes of a file, with the version of its layout
	layout  = magic + "%s}\n"
	maxSize = 256 << 20             // bytes; the context of a stream at all of its limits takes about half of it
	mode    = fs.FileMode(0o600)    // it contains names of programs
	wait    = 2 * time.Second       // longest wait for another process that is ending
	pause   = 20 * time.Millisecond // between two attempts
)

// Reasons why a file is refused, and left unchanged.
var (
	errInUse     = errors.New("is in use by another process")
	errForeign   = errors.New("is not a context file of symfilter; name another file")
	errLink      = errors.New("is a symbolic link; name the file itself")
	errIrregular = errors.New("is not a regular file; name another file")
	errPlanted   = errors.New("belongs to another user, in a folder that everybody may write to; use a folder of your own")
	errTooLarge  = errors.New("is too large for a context file; name another file")
	errReplaced  = errors.New("another file has replaced the context file, and is not changed; contexts are no longer saved")
)

// A File is the context file of this process. It is not safe for concurrent use.
type File struct {
	path string
	root *os.Root // folder of path
	name string   // path below root
	file *os.File // open and locked
}

// A body is the content of a file after the magic.
type body struct {
	Version int             `json:"v"`
	Context json.RawMessage `json:"context"`
}

// Open opens the file at path, or makes an empty one, and locks it until Close. context is from the
// last Save, or nil. Open waits up to 2 s for another process that has locked the file.
//
// If the context is torn, damaged or of another version, unusable is the reason, which wraps an
// error of package checkpoint. The next Save replaces the context. If the file is not a context
// file, err is the reason.
func Open(path string) (f *File, context []byte, unusable, err error) {
	dir, name := filepath.Split(path)
	root, err := os.OpenRoot(filepath.Clean(dir + "."))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open the folder of the context file: %w", err)
	}
	f = &File{path: path, root: root, name: name}
	content, err := f.acquire()
	if err != nil {
		f.Close()
		if system, ok := errors.AsType[*fs.PathError](err); ok {
			err = fmt.Errorf("cannot be opened: %w", system.Err)
		}
		return nil, nil, nil, fmt.Errorf("%s %w", path, err)
	}
	context, unusable = decode(content)
	return f, context, unusable, nil
}

// acquire opens and locks the file, and returns its content.
func (f *File) acquire() ([]byte, error) {
	for begin := time.Now(); ; time.Sleep(pause) {
		file, err := f.open()
		if err != nil {
			return nil, err
		}
		if lock(file) && f.isAtPath(file) {
			f.file = file
			return f.read()
		}
		file.Close() // another process has locked it, or has just replaced it
		if time.Since(begin) > wait {
			return nil, errInUse
		}
	}
}

// open opens the file at the path, or makes it.
func (f *File) open() (*os.File, error) {
	if f.name == "" || f.name == ".." { // a folder, which is not below root
		return nil, errIrregular
	}
	info, err := f.root.Lstat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.root.OpenFile(f.name, os.O_RDWR|os.O_CREATE, mode)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}
	if folder, err := f.root.Stat("."); err != nil || planted(folder, info) {
		return nil, cmp.Or(err, errPlanted)
	}
	return f.root.OpenFile(f.name, os.O_RDWR, 0)
}

// isAtPath reports whether the path leads to file.
func (f *File) isAtPath(file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	info, err := f.root.Lstat(f.name)
	return err == nil && os.SameFile(info, opened)
}

// read returns the content of the file. The error is the reason why the file is refused.
func (f *File) read() ([]byte, error) {
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f.file, head)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case string(head[:n]) != magic[:n]:
		return nil, errForeign
	case info.Size() > maxSize:
		return nil, errTooLarge
	}
	rest, err := io.ReadAll(io.LimitReader(f.file, maxSize))
	return append(head[:n], rest...), err
}

// decode returns the context in the content of a file, or nil if the file is empty. The caller has
// checked the magic, of which a torn file may have only the beginning.
func decode(content []byte) (context []byte, unusable error) {
	if len(content) == 0 {
		return nil, nil
	}
	if len(content) < len(magic) {
		return nil, checkpoint.ErrTorn
	}
	var b body
	if err := checkpoint.Decode(bytes.Join([][]byte{{'{'}, content[len(magic):]}, nil), &b); err != nil {
		return nil, err
	}
	return b.Context, nil
}

// Save replaces the content of the file by context, a JSON object. A reader finds the old or the
// new content.
func (f *File) Save(context []byte) error {
	if err := f.save(context); err != nil {
		return fmt.Errorf("save the context in %s: %w", f.path, err)
	}
	return nil
}

func (f *File) save(context []byte) (err error) {
	if _, err := f.root.Lstat(f.name); err == nil && locks && !f.isAtPath(f.file) {
		return errReplaced
	}
	inner := checkpoint.Append(nil, body{checkpoint.Version, context})
	made, err := newfile.Create(f.root, "."+f.name+".")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			made.Discard()
		}
	}()
	if _, err := fmt.Fprintf(made, layout, inner[1:len(inner)-1]); err != nil {
		return err
	}
	lock(made.File)
	if !locks { // an open file cannot be replaced on this system
		f.file.Close()
	}
	if err := made.Publish(f.name); err != nil {
		return err
	}
	f.file.Close()
	f.file = made.File
	return nil
}

// Close ends the use of the file.
func (f *File) Close() error {
	if f.file != nil {
		f.file.Close() // if it fails, nothing is lost: Publish has synced it
	}
	return f.root.Close()
}
