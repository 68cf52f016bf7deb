package lineage

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A Family lists the rotated files of a followed file at one moment.
type Family struct {
	Files      []File          // all but archives
	Archives   []File          // rotated files that were compressed
	hasArchive map[string]bool // paths of archives before their compression
	// files may be missing: a folder or a file could not be examined
	Partial bool
	Torn    bool // files may be missing: one was renamed or removed after its folder was listed
}

// ErrIrregular is the error of a LookFunc, perhaps wrapped, if the path is not a regular file.
var ErrIrregular = errors.New("not a regular file")

// A LookFunc returns the file at a path. Its error wraps ErrIrregular for anything but a regular
// file, and fs.ErrNotExist if there is no file.
type LookFunc func(path string) (File, error)

// Names are the sorted names in a folder.
type Names []string

// Add adds the rotated files of the file at path, and their archives. names are the names in its
// folder.
func (f *Family) Add(path string, names Names, look LookFunc) {
	dir, base := filepath.Split(path)
	stem := base[:len(base)-len(filepath.Ext(base))]
	if stem == "" {
		stem = base
	}
	for _, name := range names.beginning(stem) {
		if name == base {
			continue
		}
		if isRotated(base, name) {
			f.Put(dir+name, path, look)
		} else if unpacked := packedBase(name); unpacked != "" && isRotated(base, unpacked) {
			if f.hasArchive == nil {
				f.hasArchive = make(map[string]bool)
			}
			f.hasArchive[dir+unpacked] = true
			c, err := look(dir + name)
			c.Of, c.Packed = path, true
			if err == nil {
				f.Archives = append(f.Archives, c)
			}
			f.Torn = f.Torn || errors.Is(err, fs.ErrNotExist)
		}
	}
}

func (n Names) beginning(prefix string) Names {
	from, _ := slices.BinarySearch(n, prefix)
	rest := n[from:]
	most, _ := slices.BinarySearchFunc(rest, prefix, func(name, prefix string) int {
		if strings.HasPrefix(name, prefix) {
			return -1
		}
		return 1
	})
	return rest[:most]
}

// Put adds the file at path, if it is a regular file. The parameter of is the path that the file
// had before rotation moved it.
func (f *Family) Put(path, of string, look LookFunc) {
	switch c, err := look(path); {
	case err == nil:
		c.Of = of
		f.Files = append(f.Files, c)
	case errors.Is(err, fs.ErrNotExist):
		f.Torn = true
	case !errors.Is(err, ErrIrregular):
		f.Partial = true
	}
}

// AddBetween adds the files to which a symbolic link led after old and before now, and their
// rotated files. The names of these targets must differ only in numbers, as in kubelet's rotation
// of a container's files.
func (f *Family) AddBetween(old, now string, names Names, look LookFunc) {
	dir, base := filepath.Split(now)
	if oldDir, oldBase := filepath.Split(old); oldDir == dir && shape(oldBase) == shape(base) {
		for _, name := range names {
			if shape(name) == shape(base) && compareNumbers(oldBase, name) < 0 && compareNumbers(name, base) < 0 {
				f.Put(dir+name, dir+name, look)
				f.Add(dir+name, names, look)
			}
		}
	}
}

// Same reports whether f and other have the same files at the same paths.
func (f *Family) Same(other *Family) bool {
	same := func(a, b File) bool { return a.Path == b.Path && a.ID == b.ID }
	return slices.EqualFunc(f.Files, other.Files, same) && slices.EqualFunc(f.Archives, other.Archives, same)
}

// hasUnpacked reports whether the plain file of the archive at path still exists. The archive may
// then be incomplete, and is not needed.
func (f *Family) hasUnpacked(path string) bool {
	base := packedBase(path)
	return slices.ContainsFunc(f.Files, func(c File) bool { return c.Path == base })
}

// named returns all files. An archive has the path of the file from which it was made.
func (f *Family) named() []File {
	all := slices.Clone(f.Files)
	for _, c := range f.Archives {
		c.Path = packedBase(c.Path)
		all = append(all, c)
	}
	return all
}

func (f *Family) has(id ID) bool {
	is := func(c File) bool { return c.ID == id }
	return slices.ContainsFunc(f.Files, is) || slices.ContainsFunc(f.Archives, is)
}
