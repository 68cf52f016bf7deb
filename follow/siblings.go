package follow

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A sibling is a file beside one that is followed, under a name that rotation gives.
type sibling struct {
	path  string
	id    fileID
	mtime time.Time
	size  int64
}

// A family is the siblings of a file at one moment.
type family struct {
	all      []sibling
	archives map[string]bool // paths that packed files had before they were packed
	lists    []listing       // of the folders, from which that is
	of       [2]string       // the files whose siblings they are
}

// sure reports whether the family is the same as that of an earlier moment, without a look at each.
func (f *family) sure(earlier *family) bool {
	return f.of == earlier.of && slices.EqualFunc(f.lists, earlier.lists, func(a, b listing) bool {
		return a.sure && b.sure && a.begun == b.begun
	})
}

// siblings returns the siblings of what the source reads or read last, and of what its name stands
// for now. The error is errLater if that cannot be said now.
func (s *source) siblings() (*family, error) {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		real = s.real
	}
	if real == "" {
		real = s.path
	}
	now := &family{of: [2]string{real, s.real}}
	paths := []string{real}
	if s.real != "" && s.real != real {
		paths = append(paths, s.real)
	}
	for _, path := range paths {
		l, err := s.f.disk.list(filepath.Dir(path))
		if errors.Is(err, errLater) {
			return nil, err
		}
		now.lists = append(now.lists, l) // what can be read of it
	}
	if s.family != nil && now.sure(s.family) {
		return s.family, nil
	}
	now.archives = make(map[string]bool)
	for i, path := range paths {
		now.add(path, now.lists[i])
	}
	if len(paths) > 1 { // a link went elsewhere
		now.between(s.real, real, now.lists[0])
		if c, ok := siblingAt(s.real); ok {
			now.all = append(now.all, c)
		}
	}
	return now, nil
}

// add adds the siblings of a file.
func (f *family) add(path string, l listing) {
	dir, base := filepath.Split(path)
	stem := base[:len(base)-len(filepath.Ext(base))]
	if stem == "" {
		stem = base
	}
	for _, name := range l.beginning(stem) {
		if name == base {
			continue
		}
		if isRotated(base, name) {
			f.put(dir + name)
		} else if packed := packedBase(name); packed != "" && isRotated(base, packed) {
			f.archives[dir+packed] = true
		}
	}
}

func (f *family) put(path string) {
	if c, ok := siblingAt(path); ok {
		f.all = append(f.all, c)
	}
}

// between adds the files to which a link went after old and before now, if the three names differ in
// their numbers alone.
func (f *family) between(old, now string, l listing) {
	dir, base := filepath.Split(now)
	if oldDir, oldBase := filepath.Split(old); oldDir == dir && shape(oldBase) == shape(base) {
		for _, name := range l.names {
			if shape(name) == shape(base) && compareNumbers(oldBase, name) < 0 && compareNumbers(name, base) < 0 {
				f.put(dir + name)
			}
		}
	}
}

// siblingAt returns what is at path, if it is a regular file and no link.
func siblingAt(path string) (sibling, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return sibling{}, false
	}
	id := identify(nil, info)
	if id == (fileID{}) { // only an open file tells here
		if id, info, err = lookAt(path); err != nil {
			return sibling{}, false
		}
	}
	return sibling{path, id, info.ModTime(), info.Size()}, true
}

// A predecessor is the file after which others are looked for.
type predecessor struct {
	g    *generation // nil: it is gone
	seen time.Time   // what was not written to since then is older; zero: all that is not known is younger
}

// next opens the file that follows: the oldest of those beside it that came after and were not
// read, or else what the name stands for. It returns nil if there is none, with the reason, if that
// is not that it is read already.
func (s *source) next(before predecessor) (*generation, error) {
	err := s.discover(before)
	if len(s.ahead) == 0 || s.gaps {
		return nil, err
	}
	g := s.ahead[0]
	s.ahead = slices.Delete(s.ahead, 0, 1)
	return g, err
}

// discover opens all files that came after before and were not read, and what the name stands for,
// and puts them into s.ahead, the oldest first. From then on they may be renamed or removed. The
// error says why what the name stands for cannot be read.
func (s *source) discover(before predecessor) error {
	for try := 0; ; try++ {
		g, err := s.f.disk.openGeneration(s.path)
		beside, later := s.siblings()
		if later != nil { // what is between is looked for later, but this one is kept
			s.gaps, s.attention = true, true
			s.wait(s.fresh(g))
			return err
		}
		unseen := s.unseen(beside, before, g)
		if !s.settled(g, beside) { // a file that was renamed just now may be none of those opened
			if closeAll(append(unseen, g)); try < maxTries {
				continue
			}
			s.gaps, s.attention = true, true
			return nil
		}
		s.gaps, s.family = false, beside
		s.rename(beside.all)
		s.f.files.prune(s, beside.all, g)
		s.reread(beside.all)
		for _, u := range unseen {
			if s.f.files.claim(u, s) != nil {
				u.close()
				continue
			}
			s.wait(u)
		}
		if older := s.ahead; len(older) > 1 {
			if i := slices.IndexFunc(older, func(a *generation) bool { return g != nil && a.id == g.id }); i >= 0 {
				last := older[i] // it has the name: it is the youngest
				older = append(slices.Delete(older, i, i+1), last)[:len(older)-1]
			}
			sortByAge(older, names(s.reading()), beside.all)
		}
		s.wait(s.fresh(g))
		if real, err := filepath.EvalSymlinks(s.path); err == nil {
			s.real = real
		}
		return err
	}
}

// wait puts g, if it is not nil, at the end of the files that are to be read.
func (s *source) wait(g *generation) {
	if g != nil {
		s.ahead = append(s.ahead, g)
		s.taken++
		if s.out != nil {
			s.changed = time.Now()
		}
	}
}

// names returns the names of files.
func names(all []*generation) (names []string) {
	for _, g := range all {
		names = append(names, g.name)
	}
	return names
}

// rename gives the files of the source the names that they have now.
func (s *source) rename(all []sibling) {
	for _, g := range s.held() {
		for _, c := range all {
			if c.id == g.id {
				g.name = c.path
			}
		}
	}
}

// reread goes on with files that the source has read and closed, and that have grown since.
func (s *source) reread(all []sibling) {
	for _, c := range all {
		r, known := s.f.files.closed(c.id, s)
		if !known || c.size <= r.mark.Off || c.mtime.Equal(r.mark.Time) {
			continue
		}
		g, err := s.f.disk.openGeneration(c.path)
		if err != nil {
			continue
		}
		if g.id != c.id || !r.mark.holds(g) || g.seek(r.mark.Off) != nil || s.f.files.claim(g, s) != nil {
			g.close()
			continue
		}
		s.done = slices.DeleteFunc(s.done, func(m mark) bool { return m.Ino == c.id.ino && m.Dev == c.id.dev })
		g.out = s.out
		s.old = append(s.old, g)
	}
}

func closeAll(all []*generation) {
	for _, g := range all {
		if g != nil {
			g.close()
		}
	}
}

// settled reports whether the name stands for g still, and its siblings are those: whether nobody
// has renamed them meanwhile.
func (s *source) settled(g *generation, beside *family) bool {
	id, _, err := lookAt(s.path)
	if g == nil && err == nil || g != nil && (err != nil || id != g.id) {
		// what cannot be opened does not settle; it is looked at again soon
		return g == nil && err == nil && s.unreadable()
	}
	return s.stands(beside)
}

// stands reports whether the siblings are those of beside still.
func (s *source) stands(beside *family) bool {
	family := s.family
	s.family = beside
	again, err := s.siblings()
	s.family = family
	return err == nil && (again == beside || slices.EqualFunc(beside.all, again.all, func(a, b sibling) bool { return a.path == b.path && a.id == b.id }))
}

// steady is siblings at a moment when nobody renames them.
func (s *source) steady() (beside *family, err error) {
	for range maxTries {
		if beside, err = s.siblings(); err != nil || s.stands(beside) {
			return beside, err
		}
	}
	return nil, errLater
}

// unreadable reports whether what the name stands for cannot be opened, now.
func (s *source) unreadable() bool {
	f, _, err := openRegular(s.path)
	if err == nil {
		f.Close()
	}
	return err != nil
}

// fresh returns g, what the name stands for, if it is to be read. It may have
// had the name before.
func (s *source) fresh(g *generation) *generation {
	if g == nil {
		return nil
	}
	for i, old := range s.held() {
		if old.id != g.id {
			continue
		}
		g.close()
		old.name = s.path
		if i >= len(s.old) { // it has its name again, or still
			return nil
		}
		s.old = slices.Delete(s.old, i, i+1)
		return old
	}
	r, known := s.f.files.get(g)
	if other := s.f.files.claim(g, s); other != nil {
		g.close()
		s.trouble("is the file that is followed as %s", other.name)
		return nil
	}
	if known && r.read && g.seek(r.mark.Off) != nil {
		g.close()
		return nil
	}
	g.hole = g.id == s.anew
	return g
}

// unseen opens those of the siblings that came after before and were not read, and are not now.
// Which came is known by what was there before, not by times: clocks are set back. Only what has an
// old time and was packed before is taken for an archive that somebody has unpacked.
func (s *source) unseen(beside *family, before predecessor, now *generation) (unseen []*generation) {
	for _, c := range beside.all {
		if now != nil && c.id == now.id || s.f.files.same(c) {
			continue
		}
		if c.mtime.Before(before.seen) {
			continue
		}
		if s.out != nil && c.mtime.Before(s.seen) && (beside.archives[c.path] || s.family != nil && s.family.archives[c.path]) {
			continue
		}
		g, err := s.f.disk.openGeneration(c.path)
		if err != nil {
			continue
		}
		if _, known := s.f.files.get(g); known || g.id != c.id || s.isCopy(g, before.g) {
			g.close()
			continue
		}
		unseen = append(unseen, g)
	}
	return unseen
}
