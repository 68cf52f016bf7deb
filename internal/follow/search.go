package follow

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// A search finds the files of a source: siblings, archives and copies. It decides which file
// continues which.
type search struct {
	*shared
	lineage  *lineage.Log // decides which siblings are read
	family   *family      // siblings at the last check
	realPath string       // path with symbolic links resolved, at the last check
	pending  bool         // some unread files may not have been found

	foreign string                    // name of an archive that cannot be unpacked
	cut     map[lineage.ID]cutArchive // archives that may still be written
}

// steady returns the siblings at a moment without a rename. The only error is errLater.
func (s *search) steady() (beside *family, err error) {
	for range maxTries {
		if beside, err = s.siblings(s.family); err != nil || s.isCurrent(beside) {
			return beside, err
		}
	}
	return nil, errLater
}

// isCurrent reports whether the siblings are still the files in beside.
func (s *search) isCurrent(beside *family) bool {
	if beside.Torn {
		return false
	}
	again, err := s.siblings(beside)
	// The folder changes too often to be listed again. Compare only the paths of the siblings.
	if errors.Is(err, errLater) {
		return !slices.ContainsFunc(slices.Concat(beside.Files, beside.Archives), func(c lineage.File) bool {
			now, err := siblingAt(c.Path)
			return err != nil || now.ID != c.ID
		})
	}
	return err == nil && (again == beside || !again.Torn && beside.Same(again.Family))
}

// settled reports whether no file was renamed during the search: the followed name still leads to
// g, and the siblings are the same.
func (s *search) settled(g *generation, beside *family) bool {
	id, _, err := lookAt(s.path)
	if g == nil && err == nil || g != nil && (err != nil || id != g.id) {
		// a file that cannot be opened is retried soon
		return g == nil && err == nil && s.unreadable()
	}
	return s.isCurrent(beside)
}

// unreadable reports whether the file with the followed name cannot be opened now.
func (s *search) unreadable() bool {
	f, _, err := openRegular(s.path)
	if err == nil {
		f.Close()
	}
	return err != nil
}

// openAll opens the file with the followed name, and its siblings, as they are at one moment. The
// error is errLater if some siblings cannot be opened now. Any other error is the reason why now is
// nil.
func (s *search) openAll() (now *generation, all lineage.Folder, beside *family, err error) {
	for try := 0; ; try++ {
		now, err = s.f.disk.openGeneration(s.path)
		var later error
		beside, later = s.siblings(s.family)
		if later != nil {
			closeAll([]*generation{now})
			return nil, all, nil, later
		}
		if all, later = lineage.Open(opener{s}, beside.Family, now.content()); later != nil {
			return nil, all, nil, errLater
		}
		// a file that was renamed or compressed during the loop may be missing
		if try == maxTries || s.settled(now, beside) {
			return now, all, beside, err
		}
		lineage.CloseAll(all.Files)
	}
}

// changes reports whether a file is being renamed, compressed or copied. The copy of a truncated
// file may then be incomplete, or missing from all. Growth of now, the file with the followed name,
// does not count as a change.
func (s *search) changes(beside *family, all []lineage.Content, now *generation) bool {
	return !s.isCurrent(beside) || slices.ContainsFunc(all, func(c lineage.Content) bool {
		g := fileOf(c)
		if g == nil || g == now {
			return false
		}
		info, err := g.Stat()
		return err == nil && info.Size() != g.size
	})
}

// ignoreSiblings records siblings that must not be read: siblings last written before since, or all
// siblings if since is zero. It returns false if the siblings cannot be listed or opened now.
func (s *search) ignoreSiblings(since time.Time) bool {
	beside, err := s.steady()
	if err != nil || !s.lineage.IgnoreOlder(opener{s}, beside.Family, since) {
		return false
	}
	s.family = beside
	return true
}

// claim records that s reads g. If another source reads it, claim reports this and closes g.
func (s *search) claim(g *generation) bool {
	other := s.lineage.Claim(g)
	if other == nil {
		return true
	}
	g.Close()
	if g.name == s.path {
		s.trouble("is the same file as %s, which is already followed", other.Name)
	} else {
		s.notify(Event{Message: fmt.Sprintf("%s is the same file as %s, which is already followed", filepath.Base(g.name), other.Name)})
	}
	return false
}

// sortAhead sorts f.ahead after files were added. g is the file with the followed name.
func (s *search) sortAhead(f *files, g *generation, beside *family) {
	older := f.ahead
	if len(older) < 2 {
		return
	}
	if i := slices.IndexFunc(older, func(a *generation) bool { return g != nil && a.id == g.id }); i >= 0 {
		last := older[i] // the youngest, since it has the name
		copy(older[i:], older[i+1:])
		older[len(older)-1] = last
		older = older[:len(older)-1]
	}
	target := ""
	if s.realPath != s.path {
		target = s.firstRealPath(f.cur)
	}
	sorted := contentsOf(older)
	s.lineage.SortByAge(sorted, contentsOf(f.reading()), beside.Family, target)
	for i, c := range sorted {
		older[i] = fileOf(c)
	}
}

// resolve records the resolved path of g, the file with the followed name. held are the open files.
// If the name now leads to another file, the recorded path stays: the next search must begin there.
func (s *search) resolve(g *generation, held []*generation) {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil || g == nil {
		return
	}
	if id, _, err := lookAt(real); err != nil || id != g.id {
		return
	}
	s.realPath = real
	if real != s.path {
		for _, h := range held {
			if h.id == g.id {
				h.realPath, h.name = real, real
			}
		}
	}
}

// firstRealPath returns the path at which the next run begins to search if the followed name is a
// symbolic link. The path of the current file cur comes first, since files after cur may be unread.
func (s *search) firstRealPath(cur *generation) string {
	if cur != nil && cur.realPath != "" {
		return cur.realPath
	}
	return s.realPath
}

// notifyOutdated reports archives that are left out because of their times.
func (s *search) notifyOutdated() {
	if all := s.lineage.Outdated(); len(all) > 0 {
		what := wording.Count(int64(len(all)), "compressed file", "compressed files")
		s.notify(Event{Message: fmt.Sprintf("%s left out as older than the lines that were read; the first is %s", what, filepath.Base(all[0].Path)), Routine: true})
	}
}
func closeAll(all []*generation) {
	for _, g := range all {
		if g != nil {
			g.Close()
		}
	}
}
