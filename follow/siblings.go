package follow

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"path/filepath"
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
	active bool // it is open: its inode is not given to another
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

// add says that the file of m is not to be read by s, or not again.
func (f *files) add(s *source, m mark, read bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := (fileID{m.Dev, m.Ino}); f.byID[id] == nil {
		f.byID[id] = &record{owner: s, read: read, mark: m}
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

// ignore says that the siblings of s that were not written to since then were
// there before s.
func (f *files) ignore(s *source, since time.Time) {
	for _, c := range s.siblings() {
		if !since.IsZero() && !c.mtime.Before(since) {
			continue
		}
		if g, err := openGeneration(c.path); err == nil {
			f.add(s, mark{Dev: g.id.dev, Ino: g.id.ino, Head: hash(g.head), Len: len(g.head), Off: g.size}, false)
			g.close()
		}
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

// A sibling is a file beside one that is followed, under a name that rotation
// gives.
type sibling struct {
	path  string
	id    fileID
	mtime time.Time
}

// siblings returns the siblings of what the source reads or read last, and of
// what its name stands for now.
func (s *source) siblings() (all []sibling) {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		real = s.real
	}
	if real == "" {
		real = s.path
	}
	all = siblings(real, all)
	if s.real != "" && s.real != real {
		all = siblings(s.real, all)
		if c, ok := siblingAt(s.real); ok { // a link that stood for it goes elsewhere now
			all = append(all, c)
		}
	}
	return all
}

// siblings appends the siblings of a file.
func siblings(path string, all []sibling) []sibling {
	dir, base := filepath.Split(path)
	d, err := os.Open(dir)
	if err != nil {
		return all
	}
	names, _ := d.Readdirnames(-1) // what can be read of them
	d.Close()
	slices.Sort(names)
	for _, name := range names {
		if name != base && isRotated(base, name) {
			if c, ok := siblingAt(dir + name); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// siblingAt returns what is at path, if it is a regular file and no link.
func siblingAt(path string) (sibling, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return sibling{}, false
	}
	id, info, err := lookAt(path)
	if err != nil {
		return sibling{}, false
	}
	return sibling{path, id, info.ModTime()}, true
}

// packed are the ends of names of files that do not hold lines, or not yet.
var packed = []string{".gz", ".zst", ".xz", ".bz2", ".lz4", ".lzo", ".lzma", ".br", ".z", ".zip", ".7z", ".tmp", ".swp", "~"}

func isPacked(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(packed, func(end string) bool { return strings.HasSuffix(name, end) })
}

// isRotated reports whether name is one that rotation gives a file called base:
// app.log.1, app.log-20261120, app.log.old; app-20261120.log, but not app-2.log,
// which may be another process's.
func isRotated(base, name string) bool {
	if isPacked(name) {
		return false
	}
	if rest, ok := strings.CutPrefix(name, base); ok && len(rest) > 1 && strings.ContainsRune(".-_", rune(rest[0])) {
		switch strings.ToLower(rest[1:]) {
		case "old", "prev", "previous", "last", "bak", "rotated", "save", "saved", "orig":
			return true
		}
		return strings.ContainsAny(rest, "0123456789")
	}
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if ext == "" || stem == "" {
		return false
	}
	rest, ok := strings.CutPrefix(name, stem)
	rest, end := strings.CutSuffix(rest, ext)
	return ok && end && len(rest) > 1 && strings.ContainsRune(".-_", rune(rest[0])) && countDigits(rest) >= 6
}

func countDigits(s string) (n int) {
	for i := range len(s) {
		if s[i]-'0' < 10 {
			n++
		}
	}
	return n
}

// A predecessor is the file behind which another is looked for.
type predecessor struct {
	g    *generation // nil: it is gone
	seen time.Time   // its last change when its name stood for it: what came later is not older
}

// next opens the file that follows: the oldest of those beside it that came
// after and were not read, or else what the name stands for. It returns nil when
// there is none, with the reason, if that is not that it is read already.
func (s *source) next(before predecessor) (*generation, error) {
	for try := 0; ; try++ {
		g, err := openGeneration(s.path)
		all := s.siblings()
		unseen := s.unseen(all, before, g)
		if !s.settled(g, all) { // a file that was renamed just now is none of those opened
			if closeAll(append(unseen, g)); try < maxTries {
				continue
			}
			return nil, nil // to be looked at again
		}
		s.f.files.prune(s, all, g)
		for i, u := range unseen {
			if s.f.files.claim(u, s) == nil {
				unseen[i] = nil
				closeAll(append(unseen, g))
				return u, nil
			}
		}
		closeAll(unseen)
		return s.fresh(g), err
	}
}

func closeAll(all []*generation) {
	for _, g := range all {
		if g != nil {
			g.close()
		}
	}
}

// settled reports whether the name stands for g still, and its siblings are
// those: whether nobody has renamed them meanwhile.
func (s *source) settled(g *generation, all []sibling) bool {
	id, _, err := lookAt(s.path)
	if g == nil && err == nil || g != nil && (err != nil || id != g.id) {
		// what cannot be opened does not settle; it is looked at again soon
		return g == nil && err == nil && s.unreadable()
	}
	return slices.EqualFunc(all, s.siblings(), func(a, b sibling) bool { return a.path == b.path && a.id == b.id })
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
	if s.cur != nil && s.cur.id == g.id { // it has its name again, just now
		g.close()
		return nil
	}
	for i, old := range s.old {
		if old.id == g.id {
			g.close()
			s.old = slices.Delete(s.old, i, i+1)
			return old
		}
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

// unseen opens those of the siblings that came after before and were not read,
// and are not now, the oldest first.
func (s *source) unseen(all []sibling, before predecessor, now *generation) (unseen []*generation) {
	for _, c := range all {
		if c.mtime.Before(before.seen) || now != nil && c.id == now.id {
			continue
		}
		g, err := openGeneration(c.path)
		if err != nil {
			continue
		}
		if _, known := s.f.files.get(g); known || g.id != c.id || s.isCopy(g, before.g) {
			g.close()
			continue
		}
		unseen = append(unseen, g)
	}
	name := ""
	if before.g != nil {
		for _, c := range all {
			if c.id == before.g.id {
				name = c.path
			}
		}
	}
	sortByAge(unseen, name)
	return unseen
}

// sortByAge sorts files from the oldest to the youngest: by their last change.
// Files of the same moment are sorted by the numbers in their names, which grow
// if they are above those of name, what the file before them is called now, and
// shrink otherwise.
func sortByAge(all []*generation, name string) {
	above := 0
	for _, g := range all {
		above += compareNumbers(g.name, name)
	}
	slices.SortStableFunc(all, func(a, b *generation) int {
		byNumber := compareNumbers(a.name, b.name)
		if above < 0 {
			byNumber = -byNumber
		}
		return cmp.Or(a.mtime.Compare(b.mtime), byNumber)
	})
}

// compareNumbers compares names, runs of digits by their value.
func compareNumbers(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the digits that s begins with.
func digits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

// copyWindow is how many bytes before the end of the shorter of two files are
// compared.
const copyWindow = 4 << 10

// copies reports whether one of g and old is a copy of the other, or of its
// beginning. Files in which all lines are the same may have come one after the
// other as well.
func (g *generation) copies(old *generation) bool {
	n := min(g.size, old.size)
	head := min(len(g.head), len(old.head))
	if n == 0 || !bytes.Equal(g.head[:head], old.head[:head]) {
		return false
	}
	a, b := make([]byte, min(n, copyWindow)), make([]byte, min(n, copyWindow))
	for _, of := range []struct {
		f *os.File
		b []byte
	}{{g.f, a}, {old.f, b}} {
		if _, err := of.f.ReadAt(of.b, n-int64(len(a))); err != nil && err != io.EOF {
			return false
		}
	}
	if !bytes.Equal(a, b) {
		return false
	}
	_, rest, _ := bytes.Cut(a, []byte{'\n'})
	line, rest, _ := bytes.Cut(rest, []byte{'\n'})
	for next := range bytes.Lines(rest) {
		if !bytes.HasPrefix(line, bytes.TrimSuffix(next, []byte{'\n'})) {
			return true
		}
	}
	return false
}

// isCopy reports whether g is a copy of before, or of another file that was read
// just now.
func (s *source) isCopy(g, before *generation) bool {
	return before != nil && g.copies(before) || slices.ContainsFunc(s.old, g.copies)
}

// copyOf returns a copy of g, which was truncated since, open behind what was
// written of g, and its name; nil if there is none, or it has no more.
func (s *source) copyOf(g *generation) (string, *generation) {
	for _, c := range s.siblings() {
		if c.mtime.Before(g.mtime.Add(-time.Minute)) || c.id == g.id {
			continue
		}
		copied, err := openGeneration(c.path)
		if err != nil {
			continue
		}
		if _, known := s.f.files.get(copied); !known && copied.continues(g) {
			if copied.size > g.off && copied.seek(g.off) == nil && s.f.files.claim(copied, s) == nil {
				return filepath.Base(c.path), copied
			}
			s.f.files.add(s, mark{Dev: c.id.dev, Ino: c.id.ino, Head: hash(copied.head), Len: len(copied.head)}, false)
		}
		copied.close()
	}
	return "", nil
}

// continues reports whether g holds what was seen of old.
func (g *generation) continues(old *generation) bool {
	if g.size < old.look || !bytes.HasPrefix(g.head, old.head) || len(old.recent) == 0 {
		return false
	}
	b := make([]byte, len(old.recent))
	_, err := g.f.ReadAt(b, old.look-int64(len(b)))
	return (err == nil || err == io.EOF) && bytes.Equal(b, old.recent)
}
