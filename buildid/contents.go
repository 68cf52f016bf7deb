package buildid

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// A root describes the files below one of the paths of a SymbolPath.
type root struct {
	path string // path as in the options
	// ELF files, including members of zip files, with build IDs
	files  int
	id     ID        // build ID of the file at path if it is an ELF file; zero otherwise
	faults []Attempt // files and folders at or below path that cannot be read; at most 16
}

// roots describes the paths in the order of the options, as the last walk found them. Before the
// first walk, it reads the index that another process has left, or walks the paths. An error means
// that the walk ended early, for example because ctx was canceled.
func (p *SymbolPath) roots(ctx context.Context) ([]root, error) {
	index := p.index.Load()
	if index == nil {
		var err error
		if index, err = p.look(ctx, nil, false); err != nil {
			return nil, err
		}
	}
	files := map[*rootIndex]int{}
	for i := range index.places {
		files[index.places[i].root]++
	}
	roots := make([]root, len(index.roots))
	for i, r := range index.roots {
		roots[i].path, roots[i].files = r.path, files[r]
		if r.file && !r.archive && len(r.folders) > 0 {
			roots[i].id = r.folders[0].files[0].id
		}
		for _, fault := range index.faults {
			// paths may overlap
			if within(r.path, fault.Where) && !slices.Contains(roots[i].faults, fault) {
				roots[i].faults = append(roots[i].faults, fault)
			}
		}
	}
	return roots, nil
}

// within reports whether path is root or below it.
func within(root, path string) bool {
	root, path = filepath.Clean(root), filepath.Clean(path)
	rest, ok := strings.CutPrefix(path, root)
	return root == "." || ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(root, string(filepath.Separator)))
}

// errNoLines is the error for a list that names no file.
var errNoLines = errors.New("no line has a build ID and a path")

// check fails if the list cannot be read, or names no file.
func (f *IDsFile) check(ctx context.Context) error {
	list, err := f.read(ctx)
	switch {
	case err != nil:
		return err
	case len(list.entries) == 0:
		return errNoLines
	}
	return nil
}
