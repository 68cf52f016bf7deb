package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

// ErrOutside is the error for a path that is not below any root. The file may exist or not.
var ErrOutside = errors.New("outside the folders that flags name")

// Roots are the folders below which source files may be opened. Other files are not opened: a log
// or debug information may name any path, and the contents of the files are printed. Many
// goroutines may use Roots.
type Roots []root

type root struct {
	dir   *os.Root
	paths []string // absolute paths of the folder: as named, and with links resolved
}

// OpenRoots opens folders. Close closes them. It leaves out folders that cannot be opened; err has
// the reasons.
func OpenRoots(dirs []string) (all Roots, err error) {
	var errs []error
	for _, dir := range dirs {
		r, err := openRoot(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(errs...)
}

func openRoot(dir string) (r root, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return r, err
	}
	// without the separator, opening a FIFO would wait for a writer
	if r.dir, err = os.OpenRoot(abs + string(filepath.Separator)); err != nil {
		return r, err
	}
	r.paths = []string{abs}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		r.paths = append(r.paths, real)
	}
	return r, nil
}

// Close closes the folders.
func (all Roots) Close() {
	for _, r := range all {
		r.dir.Close()
	}
}

// String lists the folders, for messages.
func (all Roots) String() string {
	var paths []string
	for _, r := range all {
		paths = append(paths, r.paths[0])
	}
	return strings.Join(paths, ", ")
}

// Open opens the source file at path, absolute or relative to the current folder or a root. It
// opens only regular files. where is the result of [buildid.File.Where]. The error is ErrOutside if
// path is outside of all roots.
func (all Roots) Open(path, where string) (*buildid.File, error) {
	failed := ErrOutside
	opener := access.BuildID(nil).(interface {
		OpenBelow(root *os.Root, name, where string) (*buildid.File, error)
	})
	for _, relative := range []bool{false, true} {
		for i := range all {
			for _, name := range all[i].below(path, relative) {
				f, err := opener.OpenBelow(all[i].dir, name, where)
				if err == nil {
					return f, nil
				}
				if failed == ErrOutside {
					failed = err
				}
			}
		}
	}
	return nil, failed
}

// Read returns the text of the source file that Open opens, at most 16 MiB.
func (all Roots) Read(path string) ([]byte, error) {
	data, _, err := all.read(path)
	return data, err
}

// read is Read, but also returns the path where the file was found.
func (all Roots) read(path string) (data []byte, found string, err error) {
	file, err := all.Open(path, "source")
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if file.Size() > maxFile {
		return nil, "", fmt.Errorf("%s: more than %d MiB", file.Path(), maxFile>>20)
	}
	data = make([]byte, file.Size())
	if n, err := file.ReadAt(data, 0); n < len(data) {
		return nil, "", fmt.Errorf("%s: %w", file.Path(), err)
	} else if err != nil && err != io.EOF {
		return nil, "", fmt.Errorf("%s: %w", file.Path(), err)
	}
	return data, file.Path(), nil
}

// Rel returns path relative to the first root above it, with slashes. A relative path below no root
// is cleaned, unless it leads upwards. ok is false for other paths. Rel does not look for the file.
func (all Roots) Rel(path string) (name string, ok bool) {
	for i := range all {
		for _, name := range all[i].below(path, false) {
			return filepath.ToSlash(name), true
		}
	}
	if filepath.IsLocal(path) {
		return filepath.ToSlash(filepath.Clean(path)), true
	}
	return "", false
}

// below returns the paths of a file relative to r, one for each path of r that contains the file.
// If relative is set, path must be relative, and starts at r. Otherwise a relative path starts at
// the current folder. The result is nil if path leads out of r.
func (r *root) below(path string, relative bool) (names []string) {
	local := !filepath.IsAbs(path)
	switch {
	case relative && local && filepath.IsLocal(path):
		return append(names, path)
	case relative:
		return nil
	case local:
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil
		}
		path = abs
	}
	for _, dir := range r.paths {
		if name, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(name) {
			names = append(names, name)
		}
	}
	return names
}
