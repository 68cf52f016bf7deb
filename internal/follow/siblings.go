package follow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A sibling is a file in the same folder as a followed one, under a name that rotation gives.
type sibling struct {
	path   string
	id     fileID
	mtime  time.Time
	size   int64
	packed bool   // an archive under the name of its file, so mtime may be the time of its compression
	of     string // path from which rotation took the file
}

// A family is the set of siblings of a file at one moment.
type family struct {
	all        []sibling       // but archives
	archives   []sibling       // rotated files that were compressed
	hasArchive map[string]bool // paths that archives had before they were compressed
	lists      []listing       // of the folders
	of         [2]string       // resolved paths of the files whose siblings these are
	// files may be missing, since a folder or a file in it could not be looked at: no permission, no
	// descriptor, a file system that fails
	partial bool
	torn    bool // a file was renamed or removed after its folder was listed, so it may be missing
}

// sure reports whether the family is certain to equal an earlier one, because the listings of the
// folders are the same.
func (f *family) sure(earlier *family) bool {
	return !earlier.partial && f.of == earlier.of && slices.EqualFunc(f.lists, earlier.lists, func(a, b listing) bool {
		return a.sure && b.sure && a.begun == b.begun
	})
}

// siblings returns the siblings of the file that the source reads or has read last, and of the file
// that its name leads to now. The error is errLater if a folder cannot be listed now.
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
		now.lists = append(now.lists, l) // even after an error: the names read before it
		now.partial = now.partial || err != nil
	}
	if s.family != nil && now.sure(s.family) {
		return s.family, nil
	}
	now.hasArchive = make(map[string]bool)
	for i, path := range paths {
		now.addSiblings(path, now.lists[i])
	}
	if len(paths) > 1 { // the symbolic link leads to another file now
		now.between(s.real, real, now.lists[0])
		torn := now.torn
		now.put(s.real, s.real)
		now.torn = torn // the file need not exist any more
	}
	return now, nil
}

// addSiblings adds the siblings of the file at path.
func (f *family) addSiblings(path string, l listing) {
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
			f.put(dir+name, path)
		} else if packed := packedBase(name); packed != "" && isRotated(base, packed) {
			f.hasArchive[dir+packed] = true
			c, err := siblingAt(dir + name)
			c.of = path
			if err == nil {
				f.archives = append(f.archives, c)
			}
			f.torn = f.torn || errors.Is(err, fs.ErrNotExist)
		}
	}
}

// put adds the file at path, which rotation took from the path of.
func (f *family) put(path, of string) {
	switch c, err := siblingAt(path); {
	case err == nil:
		c.of = of
		f.all = append(f.all, c)
	case errors.Is(err, fs.ErrNotExist):
		f.torn = true
	case !errors.Is(err, errIrregular):
		f.partial = true
	}
}

// between adds the files to which a symbolic link led in turn after old and before now, if their
// three names differ in numbers only, with their siblings: kubelet rotates each file of a container.
func (f *family) between(old, now string, l listing) {
	dir, base := filepath.Split(now)
	if oldDir, oldBase := filepath.Split(old); oldDir == dir && shape(oldBase) == shape(base) {
		for _, name := range l.names {
			if shape(name) == shape(base) && compareNumbers(oldBase, name) < 0 && compareNumbers(name, base) < 0 {
				f.put(dir+name, dir+name)
				f.addSiblings(dir+name, l)
			}
		}
	}
}

// siblingAt returns the file at path. The error is errIrregular if it is not a regular file, or is a
// link.
func siblingAt(path string) (sibling, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return sibling{}, err
	}
	if !info.Mode().IsRegular() {
		return sibling{}, errIrregular
	}
	id := identify(nil, info)
	if id == (fileID{}) { // on this system a file has an ID only while it is open
		if id, info, err = lookAt(path); err != nil {
			return sibling{}, err
		}
	}
	return sibling{path: path, id: id, mtime: info.ModTime(), size: info.Size()}, nil
}

// A predecessor is the file whose successors are searched.
type predecessor struct {
	g *generation // nil if the file is gone
	// files not written to since then are older; if zero, every file without a record is younger
	seen time.Time
}

// next opens the next file: the oldest unread sibling that is younger than before, or else the file
// that the name leads to. It returns nil if there is no such file; the error is the reason, or nil
// if the file was read already.
func (s *source) next(before predecessor) (*generation, error) {
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
func (s *source) discover(before predecessor) error {
	for try := 0; ; try++ {
		g, err := s.f.disk.openGeneration(s.path)
		beside, later := s.siblings()
		if later != nil { // the files in between are searched later; this one is kept open
			s.gaps, s.attention = true, true
			s.wait(s.fresh(g))
			return err
		}
		unseen := s.unseen(beside, before, g)
		archives, pending := s.unseenArchives(beside, before, unseen)
		unseen = append(unseen, archives...)
		// a file that was renamed meanwhile may be missing among those opened
		if !s.settled(g, beside) {
			if closeAll(append(unseen, g)); try < maxTries {
				continue
			}
			s.gaps, s.attention = true, true
			return nil
		}
		s.gaps, s.family = pending, beside
		s.rename(beside.all)
		s.rename(beside.archives)
		s.f.files.prune(s, beside, g)
		s.forgetLeftOut(beside)
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
				last := older[i] // the last file has the name, so it is the youngest
				copy(older[i:], older[i+1:])
				older[len(older)-1] = last
				older = older[:len(older)-1]
			}
			sortByAge(older, s.olderNames(beside), beside.named())
		}
		s.wait(s.fresh(g))
		s.resolve(g)
		return err
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
	s.real = real
	if real != s.path {
		for _, h := range s.held() {
			if h.id == g.id {
				h.real, h.name = real, real
			}
		}
	}
}

// realName returns the path at which the search of the next run begins if the name is a symbolic link:
// that of the current file, after which others may be waiting.
func (s *source) realName() string {
	if s.cur != nil && s.cur.real != "" {
		return s.cur.real
	}
	return s.real
}

// wait appends g, unless it is nil, to the files that are to be read.
func (s *source) wait(g *generation) {
	if g != nil {
		s.ahead = append(s.ahead, g)
		if g.id == s.before {
			s.before = fileID{} // once: its inode may be used again
		} else {
			s.taken++
		}
		if s.out != nil {
			s.changed = time.Now()
		}
	}
}

// olderNames returns the names of files that are older than those ahead, as far as they are in beside: the
// others were removed, and another file may have the name by which they were known. A symbolic link
// leads to higher and higher numbers.
func (s *source) olderNames(beside *family) (names []string) {
	there := beside.named()
	for _, g := range s.reading() {
		if slices.ContainsFunc(there, func(c sibling) bool { return c.id == g.id || c.id == g.archive.id }) {
			names = append(names, g.rotatedName())
		}
	}
	if s.real != s.path {
		names = append(names, s.realName())
	}
	return names
}

// rename updates the paths of the source's open files after they were renamed.
func (s *source) rename(all []sibling) {
	for _, g := range s.held() {
		for _, c := range all {
			switch c.id {
			case g.id:
				g.name, g.real = c.path, c.of
			case g.archive.id:
				g.archive.path = c.path
			}
		}
	}
}

// reread opens files that the source has read and closed and that have grown since, to read their
// new lines.
func (s *source) reread(all []sibling) {
	for _, c := range all {
		r, known := s.f.files.closedRecord(c.id, s)
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
		s.readFiles = slices.DeleteFunc(s.readFiles, func(m mark) bool { return m.Ino == c.id.ino && m.Dev == c.id.dev })
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
	if beside.torn {
		return false
	}
	family := s.family
	s.family = beside
	again, err := s.siblings()
	s.family = family
	if errors.Is(err, errLater) { // a large folder that changes all the time: at least none of them was renamed
		return !slices.ContainsFunc(slices.Concat(beside.all, beside.archives), func(c sibling) bool {
			now, err := siblingAt(c.path)
			return err != nil || now.id != c.id
		})
	}
	return err == nil && (again == beside || !again.torn && slices.EqualFunc(beside.all, again.all, sameFile) && slices.EqualFunc(beside.archives, again.archives, sameFile))
}

// sameFile reports whether the same file is at the same path.
func sameFile(a, b sibling) bool { return a.path == b.path && a.id == b.id }

// steady returns the siblings at a moment when no file is being renamed.
func (s *source) steady() (beside *family, err error) {
	for range maxTries {
		if beside, err = s.siblings(); err != nil || s.isCurrent(beside) {
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
		g.close()
		old.name = s.path
		if i >= len(s.old) { // it still has the name, or has it again
			return nil
		}
		s.old = slices.Delete(s.old, i, i+1)
		return old
	}
	r, known := s.f.files.recordOf(g)
	if other := s.f.files.claim(g, s); other != nil {
		g.close()
		s.trouble("is the file that is followed as %s", other.name)
		return nil
	}
	if known && r.read && g.seek(r.mark.Off) != nil {
		g.close()
		return nil
	}
	g.hole = g.id == s.truncatedID
	return g
}

// leavesOut reports whether the archive of the file at path is not to be read. Otherwise the file may
// be the one that is being compressed.
func (s *source) leavesOut(beside *family, path string) bool {
	isKnown := func(a sibling) bool { return packedBase(a.path) == path && s.isLeftOut(a) }
	return s.f.o.Unpack == nil || slices.ContainsFunc(beside.archives, isKnown) || s.family != nil && slices.ContainsFunc(s.family.archives, isKnown)
}

// unseen opens the siblings that are younger than before and are neither read nor being read. The
// records decide which files are younger, not times, since clocks may be set back. One exception: a
// file with an old time whose compressed form existed before is taken for an archive that someone
// has unpacked.
func (s *source) unseen(beside *family, before predecessor, now *generation) (unseen []*generation) {
	for _, c := range beside.all {
		if now != nil && c.id == now.id || s.f.files.same(c) {
			continue
		}
		if c.mtime.Before(before.seen) {
			continue
		}
		if s.out != nil && c.mtime.Before(s.seen) && (beside.hasArchive[c.path] || s.family != nil && s.family.hasArchive[c.path]) {
			if _, read := s.f.files.closedRecord(c.id, s); !read && s.leavesOut(beside, c.path) {
				s.f.files.ignore(s, c) // the next search may not see the archive
			}
			continue
		}
		g, err := s.f.disk.openGeneration(c.path)
		if err != nil {
			continue
		}
		r, known := s.f.files.recordOf(g)
		switch {
		case known && r.read:
			s.f.files.touched(g)
		case known: // it may have grown
			s.f.files.leave(r.owner, g)
		}
		if known || g.id != c.id || s.isCopy(g, before.g) {
			g.close()
			continue
		}
		g.real = c.of
		g.closeIfCrowded()
		unseen = append(unseen, g)
	}
	return unseen
}
