package follow

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// files records the files that any source reads, has read or must not read: those that exist by a
// record each, those that no longer exist by a mark. Archives that a source does not read are in
// source.leftOut, and what a checkpoint has of all of them in savedSource. It is safe for concurrent
// use.
type files struct {
	mu   sync.Mutex
	byID map[fileID]*record // of files that exist
	// of files that a source has read or left out and that no longer exist: their archives are
	// recognised by them; see lastMarks
	gone map[*source][]mark
}

func newFiles() files { return files{byID: make(map[fileID]*record), gone: make(map[*source][]mark)} }

// A record describes what a source does with a file.
type record struct {
	owner  *source
	active bool // the file is being read
	// the file was read up to mark; otherwise it existed before and is not to be read
	read bool
	mark mark
}

// matches reports whether g is the file of the record. The inode alone does not identify it: if the
// file is no longer open, it may be gone and its inode reused.
func (r *record) matches(g *generation) bool {
	switch {
	case r.active:
		return true
	case r.read:
		return r.mark.holds(g) && (r.mark.Off > 0 || g.size == 0)
	}
	return r.mark.sameBeginning(g) && (r.mark.Len > 0 || g.size == 0)
}

// claim records that s reads g. If another source reads it, or has read it, claim returns that
// source and records nothing.
func (f *files) claim(g *generation, s *source) (other *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r != nil {
		switch same := r.matches(g); {
		case same && r.read && r.owner != s:
			return r.owner
		case !same:
			f.keepMarks(r.owner, r.mark)
		}
	}
	f.byID[g.id] = &record{owner: s, active: true, read: true}
	return nil
}

// finish records that g has been read as far as it will be. It is called by the owner of g.
func (f *files) finish(g *generation) {
	m, err := g.mark()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[g.id]
	if err != nil || r == nil {
		delete(f.byID, g.id)
		return
	}
	if g.gone { // its inode is free for another file
		f.keepMarks(r.owner, m)
		delete(f.byID, g.id)
		return
	}
	r.active, r.mark = false, m
	r.owner.wasRead(m)
}

// forget removes g, so that it is read from its beginning.
func (f *files) forget(g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, g.id)
}

// addRead records that s has read the file of m up to its offset.
func (f *files) addRead(s *source, m mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := (fileID{m.Dev, m.Ino}); f.byID[id] == nil {
		f.byID[id] = &record{owner: s, read: true, mark: m}
	}
}

// forgetSaved removes the record of the file of m, which a checkpoint has, before s reads on in it or in
// its archive: its mark is not that of a file that was read, and its inode may be used again.
func (f *files) forgetSaved(s *source, m mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := fileID{m.Dev, m.Ino}
	if r := f.byID[id]; r != nil && r.owner == s && !r.active && r.mark == m {
		delete(f.byID, id)
	}
}

// leave records that s does not read g: the file is older than s, or a copy of lines that s has
// read.
func (f *files) leave(s *source, g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r == nil || !r.active { // else it is read by another source
		m := mark{Dev: g.id.dev, Ino: g.id.ino, Head: hash(g.head), Len: len(g.head), Off: g.size, Time: g.mtime}
		if s.f.o.Unpack != nil && g.newline() != nil { // its archive may have to be recognised
			before := make([]byte, min(m.Off, recentSize))
			if _, err := g.ReadAt(before, m.Off-int64(len(before))); err == nil || err == io.EOF {
				m.Before = hash(before)
			}
		}
		if r != nil && !r.matches(g) { // the inode was used again
			f.keepMarks(r.owner, r.mark)
		}
		f.byID[g.id] = &record{owner: s, mark: m}
	}
}

// addGone keeps marks of files of s that no longer exist.
func (f *files) addGone(s *source, marks ...mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepMarks(s, marks...)
}

// keepMarks does what addGone does while f.mu is held.
func (f *files) keepMarks(s *source, marks ...mark) {
	if s.f.o.Unpack == nil || len(marks) == 0 { // archives are not read
		return
	}
	all := f.gone[s]
	for _, m := range marks {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	f.gone[s] = lastMarks(all, maxMarks)
}

// lastGone returns the marks of the last n files of s that no longer exist, and of those of a
// burst, the oldest first.
func (f *files) lastGone(s *source, n int) []mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(lastMarks(f.gone[s], n))
}

// marksOf returns the marks of the files that s has read or left out, also of those that no longer
// exist.
func (f *files) marksOf(s *source) (marks []mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.byID {
		if r.owner == s && !r.active {
			marks = append(marks, r.mark)
		}
	}
	return append(marks, f.gone[s]...)
}

// drop removes all files of s.
func (f *files) drop(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gone, s)
	maps.DeleteFunc(f.byID, func(_ fileID, r *record) bool { return r.owner == s })
}

// recordOf returns the record of g, if there is one.
func (f *files) recordOf(g *generation) (record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r != nil && r.matches(g) {
		return *r, true
	}
	return record{}, false
}

// same reports whether c has a record and is unchanged since, so that it need not be opened.
func (f *files) same(c sibling) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[c.id]
	return r != nil && (r.active || r.mark.Time.Equal(c.mtime) && r.mark.Off == c.size)
}

// closedRecord returns the record of a file if s has read and closed it.
func (f *files) closedRecord(id fileID, s *source) (record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil && r.owner == s && r.read && !r.active && r.mark.Off > 0 {
		return *r, true
	}
	return record{}, false
}

// ignore records that c is older than s and is not read. It returns false if c cannot be opened
// because too many files are open, or if another file has its path now.
func (f *files) ignore(s *source, c sibling) bool {
	if f.same(c) {
		return true
	}
	g, err := s.f.disk.openGeneration(c.path)
	if err != nil {
		return !tooMany(err) && !errors.Is(err, fs.ErrNotExist)
	}
	defer g.close()
	if g.id != c.id {
		return false
	}
	f.leave(s, g)
	return true
}

// prune replaces the records of files that s has read and that are neither in there nor the file now
// by marks. If there is partial it does nothing: a file that reappears would be read again.
func (f *files) prune(s *source, there *family, now *generation) {
	if there.partial {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := s.removeGone(slices.Concat(there.all, there.archives), now)
	f.keepMarks(s, gone...)
	for _, m := range gone {
		if r := f.byID[fileID{m.Dev, m.Ino}]; r != nil && r.owner == s && !r.active {
			delete(f.byID, fileID{m.Dev, m.Ino})
		}
	}
}

// wasRead adds m to the files that s has read.
func (s *source) wasRead(m mark) { s.readFiles = append(s.readFiles, m) }

// removeGone removes from s.readFiles the files that no longer exist, and returns them.
func (s *source) removeGone(there []sibling, now *generation) (gone []mark) {
	s.readFiles = slices.DeleteFunc(s.readFiles, func(m mark) bool {
		id := fileID{m.Dev, m.Ino}
		if now != nil && now.id == id || slices.ContainsFunc(there, func(c sibling) bool { return c.id == id }) {
			return false
		}
		gone = append(gone, m)
		return true
	})
	return gone
}

// ignoreSiblings records that the siblings of s that were last written before since are older than
// s; all of them if since is zero. It returns false if they cannot be listed or opened now.
func (s *source) ignoreSiblings(since time.Time) bool {
	beside, err := s.steady()
	if err != nil {
		return false
	}
	if beside != s.family || s.ignored.IsZero() || !s.ignored.Equal(since) {
		for _, c := range beside.all {
			if (since.IsZero() || c.mtime.Before(since)) && !s.f.files.ignore(s, c) {
				return false
			}
		}
		s.family, s.ignored = beside, since
	}
	return true
}

// fingerprintSize is the length in bytes of a sibling's fingerprint in a checkpoint.
const fingerprintSize = 6

// fingerprint returns the fingerprint of c, from its inode and last change. A rotated file keeps it
// as long as it is not written to, even if its device gets another number.
func (c sibling) fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", c.id.ino, c.mtime.UnixNano()))
	return string(sum[:fingerprintSize])
}

// knownSiblings returns the fingerprints, for a checkpoint, of the siblings that the next run must
// not read, and whether they include archives. Until the siblings are searched they are those of
// the last checkpoint, the files that were read since, and the archives of what the last run had
// read to its end. It returns nil if the checkpoint has none.
func (s *source) knownSiblings() (beside *string, archives bool) {
	if s.family == nil {
		if s.savedBeside == nil || len(s.readFiles)+len(s.leftOut) == 0 {
			return s.savedBeside, s.savedArchives
		}
		saved := savedSource{Beside: s.savedBeside}
		all := saved.fingerprints()
		for _, m := range s.readFiles {
			all = append(all, sibling{id: fileID{ino: m.Ino}, mtime: m.Time}.fingerprint())
		}
		for id, at := range s.leftOut {
			all = append(all, sibling{id: id, mtime: at}.fingerprint())
		}
		return encodeFingerprints(all), s.savedArchives
	}
	var all []string
	for _, c := range s.family.all {
		if at, known := s.f.files.timeOf(c.id); known {
			c.mtime = at
			all = append(all, c.fingerprint())
		}
	}
	for _, c := range s.family.archives {
		if slices.ContainsFunc(s.held(), func(g *generation) bool { return g.archive.id == c.id }) {
			continue // if this run is killed, the next one may have to read on in it
		}
		if s.isLeftOut(c) || s.f.files.hasRead(c) {
			all = append(all, c.fingerprint())
		}
	}
	return encodeFingerprints(all), s.f.o.Unpack != nil
}

// encodeFingerprints returns the Beside of a checkpoint.
func encodeFingerprints(all []string) *string {
	slices.Sort(all)
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Join(slices.Compact(all), "")))
	return &text
}

// hasRead reports whether c was read to its end: the record of its inode may be that of an earlier
// file.
func (f *files) hasRead(c sibling) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[c.id]
	return r != nil && !r.active && r.read && r.mark.Time.Equal(c.mtime)
}

// timeOf returns the last change of a file that has a record and is not being read, as the record has
// it: if the inode was used again, that of the file before.
func (f *files) timeOf(id fileID) (at time.Time, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil && !r.active {
		return r.mark.Time, true
	}
	return time.Time{}, false
}

// touched records the last change of g, which has the same bytes as when it was read or left out.
func (f *files) touched(g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r != nil && !r.active && r.mark.Off == g.size {
		r.mark.Time = g.mtime
	}
}

// fingerprints returns those in Beside.
func (s *savedSource) fingerprints() (all []string) {
	if s.Beside != nil {
		prints, _ := base64.RawStdEncoding.DecodeString(*s.Beside)
		for p := range slices.Chunk(prints, fingerprintSize) {
			all = append(all, string(p))
		}
	}
	return all
}

// ignoreSaved records which of all must not be read according to a checkpoint: the files it lists
// as read, and the siblings it lists. Other files are newer, whatever their time. A checkpoint of
// an earlier version has no list of siblings: then files last written before since are older.
func (s *source) ignoreSaved(saved savedSource, all []*generation, since time.Time) {
	beside := saved.fingerprints()
	rest := slices.Clone(saved.Read)
	defer func() {
		// the other marks are needed to recognise archives
		s.f.files.addGone(s, slices.DeleteFunc(rest, s.isListedArchive)...)
	}()
	for i, g := range all {
		if g == nil {
			continue
		}
		read := slices.IndexFunc(saved.Read, func(m mark) bool { return m.Ino == g.id.ino && m.holds(g) })
		switch {
		case read >= 0:
			m := saved.Read[read]
			rest = slices.DeleteFunc(rest, func(r mark) bool { return r == m })
			m.Dev = g.id.dev
			s.f.files.addRead(s, m)
			s.readFiles = append(s.readFiles, m)
		case i == 0 && g.name == s.path: // the current file
		case saved.Beside == nil && g.mtime.Before(since), slices.Contains(beside, sibling{id: g.id, mtime: g.mtime}.fingerprint()):
			s.f.files.leave(s, g)
		}
	}
}

// isListedArchive reports whether m is of an archive that the checkpoint lists.
func (s *source) isListedArchive(m mark) bool {
	for id, at := range s.leftOut {
		if id.ino == m.Ino && at.Equal(m.Time) {
			return true
		}
	}
	return false
}

// hasSuccessor reports whether a file in all is newer than the checkpoint, whose last file is last: it is
// to be read even if no file has the name now.
func (saved savedSource) hasSuccessor(all []*generation, last mark) bool {
	beside := saved.fingerprints()
	isOf := func(g *generation, m mark) bool {
		if g.contents != nil {
			return m.Len > 0 && m.holds(g)
		}
		return m.Ino == g.id.ino && m.holds(g) && (m.Len > 0 || g.size == 0)
	}
	for _, g := range all {
		switch {
		case g == nil:
		// an archive has the time of its last line, or of its compression
		case (g.contents != nil || saved.Beside == nil) && !g.mtime.After(last.Time):
		case g.contents == nil && slices.Contains(beside, sibling{id: g.id, mtime: g.mtime}.fingerprint()):
		case slices.ContainsFunc(saved.Read, func(m mark) bool { return isOf(g, m) }):
		case slices.ContainsFunc(saved.Reading, func(r savedReading) bool { return isOf(g, r.mark) }):
		default:
			return true
		}
	}
	return false
}
