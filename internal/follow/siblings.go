package follow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// A family is the set of siblings of a file at one moment: files in the same folder under names
// that rotation gives.
type family struct {
	*lineage.Family
	lists []listing // of the folders
	of    [2]string // resolved paths of the files whose siblings these are
}

// sure reports whether the family is certain to equal an earlier one, because the listings of the
// folders are the same.
func (f *family) sure(earlier *family) bool {
	return !earlier.Partial && f.of == earlier.of && slices.EqualFunc(f.lists, earlier.lists, func(a, b listing) bool {
		return a.sure && b.sure && a.begun == b.begun
	})
}

// siblings returns the siblings of the file that the source reads or has read last, and of the file
// that its name leads to now; earlier itself if they are the same. The error is errLater if a
// folder cannot be listed now.
func (s *source) siblings(earlier *family) (*family, error) {
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

// siblingAt returns the file at path. The error is lineage.ErrIrregular if it is not a regular
// file, or is a link.
func siblingAt(path string) (lineage.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return lineage.File{}, err
	}
	if !info.Mode().IsRegular() {
		return lineage.File{}, lineage.ErrIrregular
	}
	id := identify(nil, info)
	if id == (lineage.ID{}) { // on this system a file has an ID only while it is open
		if id, info, err = lookAt(path); err != nil {
			return lineage.File{}, err
		}
	}
	return lineage.File{Path: path, ID: id, ModTime: info.ModTime(), Size: info.Size()}, nil
}

// next opens the next file: the oldest unread sibling that is younger than before, or else the file
// that the name leads to. It returns nil if there is no such file; the error is the reason, or nil
// if the file was read already.
func (s *source) next(before lineage.Predecessor) (*generation, error) {
	err := s.discover(before)
	if len(s.ahead) == 0 || s.gaps {
		return nil, err
	}
	g := s.ahead[0]
	s.ahead = slices.Delete(s.ahead, 0, 1)
	return g, err
}

// discover opens all unread files that are younger than before, and the file that the name leads
// to, and appends them to s.ahead, the oldest first. Once open, they may be renamed or removed. The
// error is the reason why the file of the name cannot be read.
func (s *source) discover(before lineage.Predecessor) error {
	for try := 0; ; try++ {
		g, err := s.f.disk.openGeneration(s.path)
		beside, later := s.siblings(s.family)
		if later != nil { // the files in between are searched later; this one is kept open
			s.gaps, s.attention = true, true
			s.wait(s.fresh(g))
			return err
		}
		unseen, pending := s.lineage.Successors(s.f.disk.ctx, opener{s}, beside.Family, before, g.content(), contentsOf(s.held()), contentsOf(s.old))
		// a file that was renamed meanwhile may be missing among those opened
		if !s.settled(g, beside) {
			for _, u := range unseen {
				u.Close()
			}
			if closeAll([]*generation{g}); try < maxTries {
				continue
			}
			s.gaps, s.attention = true, true
			return nil
		}
		s.gaps, s.family = pending, beside
		s.rename(beside.Files)
		s.rename(beside.Archives)
		claimed, late := s.lineage.Take(opener{s}, beside.Family, g.content(), unseen)
		for _, l := range started(late) {
			l.out = s.out
			s.old = append(s.old, l)
		}
		for _, u := range started(claimed) {
			s.wait(u)
		}
		s.notifyOutdated()
		s.sortAhead(g, beside)
		s.wait(s.fresh(g))
		s.resolve(g)
		return err
	}
}

// sortAhead sorts the files that are to be read, after some were found. g has the name.
func (s *source) sortAhead(g *generation, beside *family) {
	older := s.ahead
	if len(older) < 2 {
		return
	}
	if i := slices.IndexFunc(older, func(a *generation) bool { return g != nil && a.id == g.id }); i >= 0 {
		last := older[i] // the last file has the name, so it is the youngest
		copy(older[i:], older[i+1:])
		older[len(older)-1] = last
		older = older[:len(older)-1]
	}
	target := ""
	if s.realPath != s.path {
		target = s.firstRealPath()
	}
	sorted := contentsOf(older)
	s.lineage.SortByAge(sorted, contentsOf(s.reading()), beside.Family, target)
	for i, c := range sorted {
		older[i] = fileOf(c)
	}
}

// resolve records the path of g, to which the name leads, with symbolic links resolved. If the name
// leads to another file by now, the next search has to begin at the path before.
func (s *source) resolve(g *generation) {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil || g == nil {
		return
	}
	if id, _, err := lookAt(real); err != nil || id != g.id {
		return
	}
	s.realPath = real
	if real != s.path {
		for _, h := range s.held() {
			if h.id == g.id {
				h.realPath, h.name = real, real
			}
		}
	}
}

// firstRealPath returns the path at which the search of the next run begins if the name is a symbolic link:
// that of the current file, after which others may be waiting.
func (s *source) firstRealPath() string {
	if s.cur != nil && s.cur.realPath != "" {
		return s.cur.realPath
	}
	return s.realPath
}

// wait appends g, unless it is nil, to the files that are to be read.
func (s *source) wait(g *generation) {
	if g != nil {
		s.ahead = append(s.ahead, g)
		if g.id == s.uncounted {
			s.uncounted = lineage.ID{} // once: its inode may be used again
		} else {
			s.taken++
		}
		if s.out != nil {
			s.changed = time.Now()
		}
	}
}

// rename updates the paths of the source's open files after they were renamed.
func (s *source) rename(all []lineage.File) {
	for _, g := range s.held() {
		for _, c := range all {
			if c.ID == g.id {
				g.name, g.realPath = c.Path, c.Of
			}
		}
	}
}

func closeAll(all []*generation) {
	for _, g := range all {
		if g != nil {
			g.Close()
		}
	}
}

// settled reports whether the name still leads to g and the siblings are the same: no file was
// renamed meanwhile.
func (s *source) settled(g *generation, beside *family) bool {
	id, _, err := lookAt(s.path)
	if g == nil && err == nil || g != nil && (err != nil || id != g.id) {
		// a file that cannot be opened is retried soon
		return g == nil && err == nil && s.unreadable()
	}
	return s.isCurrent(beside)
}

// isCurrent reports whether the siblings are still those in beside.
func (s *source) isCurrent(beside *family) bool {
	if beside.Torn {
		return false
	}
	again, err := s.siblings(beside)
	if errors.Is(err, errLater) { // a large folder that changes all the time: at least none of them was renamed
		return !slices.ContainsFunc(slices.Concat(beside.Files, beside.Archives), func(c lineage.File) bool {
			now, err := siblingAt(c.Path)
			return err != nil || now.ID != c.ID
		})
	}
	return err == nil && (again == beside || !again.Torn && beside.Same(again.Family))
}

// steady returns the siblings at a moment when no file is being renamed.
func (s *source) steady() (beside *family, err error) {
	for range maxTries {
		if beside, err = s.siblings(s.family); err != nil || s.isCurrent(beside) {
			return beside, err
		}
	}
	return nil, errLater
}

// unreadable reports whether the file that the name leads to cannot be opened now.
func (s *source) unreadable() bool {
	f, _, err := openRegular(s.path)
	if err == nil {
		f.Close()
	}
	return err != nil
}

// fresh returns g, the file that the name leads to, if it is to be read; otherwise it closes g and
// returns nil. If the file had the name before and is still open, fresh returns the open one.
func (s *source) fresh(g *generation) *generation {
	if g == nil {
		return nil
	}
	for i, old := range s.held() {
		if old.id != g.id {
			continue
		}
		g.Close()
		old.name = s.path
		if i >= len(s.old) { // it still has the name, or has it again
			return nil
		}
		s.old = slices.Delete(s.old, i, i+1)
		return old
	}
	from, read := s.lineage.Known(g)
	if read && g.seek(from) != nil { // its record stays, so that the next look reads on there
		g.Close()
		s.attention = true
		return nil
	}
	if !s.claim(g) {
		return nil
	}
	g.hole = g.id == s.truncatedID
	return g
}

// claim records that s reads g. If another source reads it, claim reports that and closes g.
func (s *source) claim(g *generation) bool {
	other := s.lineage.Claim(g)
	if other == nil {
		return true
	}
	g.Close()
	if g.name == s.path {
		s.trouble("is the file that is followed as %s", other.Name)
	} else {
		s.notify(Event{Message: fmt.Sprintf("%s is the file that is followed as %s", filepath.Base(g.name), other.Name)})
	}
	return false
}

// notifyOutdated reports the archives that are left out because of their times.
func (s *source) notifyOutdated() {
	if all := s.lineage.Outdated(); len(all) > 0 {
		what := wording.Count(int64(len(all)), "compressed file", "compressed files")
		s.notify(Event{Message: fmt.Sprintf("left out as older than what was read: %s, beginning with %s", what, filepath.Base(all[0].Path)), Routine: true})
	}
}
