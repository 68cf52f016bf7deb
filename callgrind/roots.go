package callgrind

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

// errOutside is the error for a source file outside of all folders that the operator named. Whether
// such a file exists is not checked.
var errOutside = errors.New("outside of the folders that flags name")

// sourceRoots are the folders below which source files may be opened. They are needed since a
// profile may name any path, and the contents of the files are printed.
type sourceRoots []sourceRoot

type sourceRoot struct {
	root  *os.Root
	paths []string // absolute paths of the folder: as given, and with links resolved
}

// sourceRoots opens the roots: the folders of the options, or the current folder, and the targets
// of the prefix maps. A root that cannot be opened is reported.
func (o *Options) sourceRoots() (all sourceRoots) {
	named := o.SourceRoots
	if len(named) == 0 {
		named = []string{"."}
	}
	for i, dir := range slices.Concat(named, newPrefixes(o.PrefixMap)) {
		root, err := openRoot(dir)
		if err != nil {
			if i < len(named) { // the target of a prefix map need not be a folder
				o.Report("--source: " + err.Error())
			}
			continue
		}
		all = append(all, root)
	}
	return all
}

func newPrefixes(maps []buildid.PrefixMap) (all []string) {
	for _, m := range maps {
		if m.New != "" {
			all = append(all, m.New)
		}
	}
	return all
}

func openRoot(dir string) (r sourceRoot, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return r, err
	}
	// without the separator, opening a FIFO waits for a writer
	if r.root, err = os.OpenRoot(abs + string(filepath.Separator)); err != nil {
		return r, err
	}
	r.paths = []string{abs}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		r.paths = append(r.paths, real)
	}
	return r, nil
}

func (all sourceRoots) close() {
	for _, r := range all {
		r.root.Close()
	}
}

// String lists the folders, for messages.
func (all sourceRoots) String() string {
	var paths []string
	for _, r := range all {
		paths = append(paths, r.paths[0])
	}
	return strings.Join(paths, ", ")
}

// open opens the source file at path, absolute or relative to any of the roots. It returns
// errOutside if path is outside of all of them.
func (all sourceRoots) open(path string) (*buildid.File, error) {
	failed := errOutside
	for _, r := range all {
		for _, name := range r.below(path) {
			f, err := buildid.OpenBelow(r.root, name, "the profile")
			if err == nil {
				return f, nil
			}
			if failed == errOutside {
				failed = err
			}
		}
	}
	return nil, failed
}

// below returns the names of path relative to r, or nil if path is outside of r.
func (r *sourceRoot) below(path string) (names []string) {
	if !filepath.IsAbs(path) {
		if filepath.IsLocal(path) {
			names = append(names, path)
		}
		return names
	}
	for _, dir := range r.paths {
		if name, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(name) {
			names = append(names, name)
		}
	}
	return names
}
