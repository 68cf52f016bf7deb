package follow

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// files are all files that are followed, were read, or are not to be read, by
// all sources. Many goroutines may use it.
type files struct {
	mu   sync.Mutex
	byID map[fileID]*record
}

// A record says what becomes of a file.
type record struct {
	owner  *source
	active bool // it is being read
	read   bool // up to what mark says; else it was there before, and is no business of ours
	mark   mark
}

// is reports whether g is the file of the record. One that is not open any more
// may be gone, and its inode another's by now.
func (r *record) is(g *generation) bool {
	switch {
	case r.active:
		return true
	case r.read:
		return r.mark.holds(g) && (r.mark.Off > 0 || g.size == 0)
	}
	return r.mark.sameBeginning(g) && (r.mark.Len > 0 || g.size == 0)
}

// claim says that s reads g, unless another does, or did.
func (f *files) claim(g *generation, s *source) (other *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r != nil && r.is(g) && r.read && r.owner != s {
		return r.owner
	}
	f.byID[g.id] = &record{owner: s, active: true, read: true}
	return nil
}

// done says that g has been read as far as it will be.
func (f *files) done(g *generation) {
	m, err := g.mark()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[g.id]
	if err != nil || r == nil {
		delete(f.byID, g.id)
		return
	}
	r.active, r.mark = false, m
	if !g.gone {
		r.owner.wasRead(m)
	}
}

// forget takes g out: it is to be read anew.
func (f *files) forget(g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, g.id)
}

// add records that s has read the file of m up to its offset.
func (f *files) add(s *source, m mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := (fileID{m.Dev, m.Ino}); f.byID[id] == nil {
		f.byID[id] = &record{owner: s, read: true, mark: m}
	}
}

// leave marks g as a file that s does not read: it was there before, or is a copy of lines that s has read.
func (f *files) leave(s *source, g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r == nil || !r.active { // else it is read by another source
		f.byID[g.id] = &record{owner: s, mark: mark{Dev: g.id.dev, Ino: g.id.ino, Head: hash(g.head), Len: len(g.head), Off: g.size, Time: g.mtime}}
	}
}

// drop forgets all files of s.
func (f *files) drop(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.byID, func(_ fileID, r *record) bool { return r.owner == s })
}

// get returns what is known of g.
func (f *files) get(g *generation) (record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[g.id]; r != nil && r.is(g) {
		return *r, true
	}
	return record{}, false
}

// same reports whether c is known, and is what it was: then there is no need to open it.
func (f *files) same(c sibling) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[c.id]
	return r != nil && (r.active || r.mark.Time.Equal(c.mtime) && r.mark.Off == c.size)
}

// closed returns what is known of a file that s has read and closed.
func (f *files) closed(id fileID, s *source) (record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil && r.owner == s && r.read && !r.active && r.mark.Off > 0 {
		return *r, true
	}
	return record{}, false
}

// ignore marks c as a file that was there before s, and is not read.
func (f *files) ignore(s *source, c sibling) {
	if f.same(c) {
		return
	}
	if g, err := s.f.disk.openGeneration(c.path); err == nil {
		f.leave(s, g)
		g.close()
	}
}

// prune forgets files that s has read and that are neither siblings of it any
// more, nor now.
func (f *files) prune(s *source, there []sibling, now *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range s.gone(there, now) {
		if r := f.byID[fileID{m.Dev, m.Ino}]; r != nil && r.owner == s && !r.active {
			delete(f.byID, fileID{m.Dev, m.Ino})
		}
	}
}

// wasRead remembers a file that s has read.
func (s *source) wasRead(m mark) { s.done = append(s.done, m) }

// gone takes those of the files that s has read that are not there any more from
// its list and returns them.
func (s *source) gone(there []sibling, now *generation) (gone []mark) {
	s.done = slices.DeleteFunc(s.done, func(m mark) bool {
		id := fileID{m.Dev, m.Ino}
		if now != nil && now.id == id || slices.ContainsFunc(there, func(c sibling) bool { return c.id == id }) {
			return false
		}
		gone = append(gone, m)
		return true
	})
	return gone
}

// ignoreSiblings marks the siblings of s that were not written to since a time as older than s; all
// of them if since is zero. It reports false if they cannot be listed now.
func (s *source) ignoreSiblings(since time.Time) bool {
	beside, err := s.steady()
	if err != nil {
		return false
	}
	if beside != s.family || s.ignored.IsZero() || !s.ignored.Equal(since) {
		s.family, s.ignored = beside, since
		for _, c := range beside.all {
			if since.IsZero() || c.mtime.Before(since) {
				s.f.files.ignore(s, c)
			}
		}
	}
	return true
}

// besideSize is how many bytes tell a sibling from others in a checkpoint.
const besideSize = 6

// print returns the fingerprint of c, of inode and last change: a rotated file that is not written to
// keeps it, also if its device gets another number.
func (c sibling) print() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", c.id.ino, c.mtime.UnixNano()))
	return string(sum[:besideSize])
}

// known returns the fingerprints, for a checkpoint, of the siblings that are not read, or not again.
func (s *source) known() *string {
	if s.family == nil {
		return nil
	}
	var all []string
	for _, c := range s.family.all {
		if s.f.files.inactive(c.id) {
			all = append(all, c.print())
		}
	}
	slices.Sort(all)
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Join(all, "")))
	return &text
}

// inactive reports whether a file is known, and is not being read.
func (f *files) inactive(id fileID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[id]
	return r != nil && !r.active
}

// knowBefore marks which of all are not read, as a checkpoint has it: those that were read, and the
// siblings that it knows. What it does not know came later, whatever its time is. A checkpoint
// without siblings was written by an earlier version: then files not written to since then are older.
func (s *source) knowBefore(saved savedSource, all []*generation, since time.Time) {
	var beside []string
	if saved.Beside != nil {
		prints, _ := base64.RawStdEncoding.DecodeString(*saved.Beside)
		for p := range slices.Chunk(prints, besideSize) {
			beside = append(beside, string(p))
		}
	}
	for i, g := range all {
		if g == nil {
			continue
		}
		read := slices.IndexFunc(saved.Read, func(m mark) bool { return m.Ino == g.id.ino && m.holds(g) })
		switch {
		case read >= 0:
			m := saved.Read[read]
			m.Dev = g.id.dev
			s.f.files.add(s, m)
			s.done = append(s.done, m)
		case i == 0 && g.name == s.path: // it has the name
		case saved.Beside == nil && g.mtime.Before(since), slices.Contains(beside, sibling{id: g.id, mtime: g.mtime}.print()):
			s.f.files.leave(s, g)
		}
	}
}
