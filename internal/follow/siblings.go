package follow

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/symfilter/symfilter/internal/lineage"
)

// A family is the set of siblings of a file at one moment: files in its folder, under names that
// rotation gives.
type family struct {
	*lineage.Family
	lists []listing // listings of the folders
	of    [2]string // resolved paths of the files whose siblings these are
}

// sure reports whether f and earlier certainly have the same files: the folders have not changed
// between their listings.
func (f *family) sure(earlier *family) bool {
	return !earlier.Partial && f.of == earlier.of && slices.EqualFunc(f.lists, earlier.lists, func(a, b listing) bool {
		return a.sure && b.sure && a.begun == b.begun
	})
}

// siblingAt returns the file at path. The error is lineage.ErrIrregular for a link, or if the file
// is not regular.
func siblingAt(path string) (lineage.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return lineage.File{}, err
	}
	if !info.Mode().IsRegular() {
		return lineage.File{}, lineage.ErrIrregular
	}
	id := identify(nil, info)
	if id == (lineage.ID{}) { // on this system, only an open file has an ID
		if id, info, err = lookAt(path); err != nil {
			return lineage.File{}, err
		}
	}
	return lineage.File{Path: path, ID: id, ModTime: info.ModTime(), Size: info.Size()}, nil
}

// siblings returns the siblings of the last file that the source has read, and of the file with the
// followed name. It returns earlier if the folders have certainly not changed. The error is
// errLater if a folder was listed too recently.
func (s *search) siblings(earlier *family) (*family, error) {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		real = s.realPath
	}
	if real == "" {
		real = s.path
	}
	now := &family{Family: new(lineage.Family), of: [2]string{real, s.realPath}}
	paths := []string{real}
	if s.realPath != "" && s.realPath != real {
		paths = append(paths, s.realPath)
	}
	for _, path := range paths {
		l, err := s.f.disk.list(filepath.Dir(path))
		if errors.Is(err, errLater) {
			return nil, err
		}
		now.lists = append(now.lists, l) // even after an error: the names read before it
		now.Partial = now.Partial || err != nil
	}
	if earlier != nil && now.sure(earlier) {
		return earlier, nil
	}
	for i, path := range paths {
		now.Add(path, now.lists[i].names, siblingAt)
	}
	if len(paths) > 1 { // the symbolic link leads to another file now
		now.AddBetween(s.realPath, real, now.lists[0].names, siblingAt)
		torn := now.Torn
		now.Put(s.realPath, s.realPath, siblingAt)
		now.Torn = torn // the file need not exist any more
	}
	return now, nil
}
