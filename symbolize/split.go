package symbolize

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
)

// splitLinks returns the functions that open the files of m's split units. Their caller holds the
// lock of m's entry.
func (m *module) splitLinks(o *Options) dwarf.Links {
	return dwarf.Links{
		Package: func() dwarf.Linked { return m.openPackage(o) },
		Split: func(dir, name string, holds func(*object.File) bool) dwarf.Linked {
			return m.openSplit(o, dir, name, holds)
		},
	}
}

// openPackage opens the package of m's split units, if any.
func (m *module) openPackage(o *Options) dwarf.Linked {
	if o.DWP != "" {
		return m.openFirst(o, []string{o.DWP}, isPackage)
	}
	var places []string
	for _, path := range realPaths(m.near) {
		places = append(places, path+".dwp")
		if base, ok := strings.CutSuffix(path, ".debug"); ok {
			places = append(places, base+".dwp")
		}
	}
	l, _ := m.openOne(o, places, isPackage)
	return l
}

func isPackage(obj *object.File) bool {
	s, ok := obj.Section(".debug_cu_index")
	return ok && s.Size > 0
}

// openSplit opens the file of a split unit. As in LLVM, it tries the recorded path first. Then it
// tries m's folders: first with the recorded path, if that is relative, then with the file's name.
func (m *module) openSplit(o *Options, dir, name string, holds func(*object.File) bool) dwarf.Linked {
	var places []string
	add := func(path string) {
		if !slices.Contains(places, path) {
			places = append(places, path)
		}
	}
	if filepath.IsAbs(name) {
		add(name)
	} else {
		add(filepath.Join(dir, name))
	}
	folders := foldersOf(m.near)
	for _, folder := range folders {
		if !filepath.IsAbs(name) {
			add(filepath.Join(folder, name))
		}
	}
	for _, folder := range folders {
		add(filepath.Join(folder, filepath.Base(name)))
	}
	return m.openFirst(o, places, holds)
}

// openFirst is openOne for a file that the debug information needs. If no file can be opened, the
// error becomes m.fault, unless there is an earlier fault.
func (m *module) openFirst(o *Options, places []string, holds func(*object.File) bool) dwarf.Linked {
	l, err := m.openOne(o, places, holds)
	if err != nil && m.fault == nil {
		m.fault = fmt.Errorf("some functions are described in another file, which is missing: %w", err)
	}
	return l
}

// openOne opens the first file in places that holds accepts. It opens only regular files: the paths
// come from operators or debug files.
func (m *module) openOne(o *Options, places []string, holds func(*object.File) bool) (dwarf.Linked, error) {
	var missing error
	for _, path := range places {
		l, err := m.tryPart(o, path, holds)
		if err == nil {
			return l, nil
		}
		if missing == nil || !errors.Is(err, fs.ErrNotExist) && errors.Is(missing, fs.ErrNotExist) {
			missing = fmt.Errorf("%.300s: %s", path, reason(err))
			if errors.Is(err, fs.ErrNotExist) {
				missing = &absentError{missing}
			}
		}
	}
	return dwarf.Linked{}, missing
}

type absentError struct{ error }

func (absentError) Is(target error) bool { return target == fs.ErrNotExist }

var errOtherUnit = errors.New("a file of another build: the ID of its unit differs")

func (m *module) tryPart(o *Options, path string, holds func(*object.File) bool) (dwarf.Linked, error) {
	file, err := buildid.OpenRegular(path, "split unit")
	if err != nil {
		return dwarf.Linked{}, err
	}
	p, err := openPart(file, o, dwarf.SplitSections())
	if err != nil {
		return dwarf.Linked{}, err
	}
	taken := false
	defer func() {
		if !taken { // also closed if reading the mapping of the file faults
			p.close()
		}
	}()
	if !holds(p.obj) {
		return dwarf.Linked{}, errOtherUnit
	}
	taken = true
	if p.file != nil {
		m.splitFDs++
	}
	return dwarf.Linked{Object: p.obj, Close: func() {
		if p.file != nil {
			m.splitFDs--
		}
		p.close()
	}}, nil
}

// reason returns the message of an error about a path, without the path.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return clip(err.Error(), maxSaid)
}
