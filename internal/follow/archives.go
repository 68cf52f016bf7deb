package follow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An archive is a rotated file that was compressed: app.log.1.gz. Its inode is not that of the file
// that it was made of, so it is recognised by what both contain: the bytes at the beginning and
// those before a place, as a checkpoint has them. Archives are read only if lines of them are
// missing, because they were rotated and compressed before they could be read.

// The marks of one source, of files that were read or left out and no longer exist, and in a
// checkpoint also of those that do. A program that compresses a file removes it when its archive is
// complete, so that the last few are enough, and those of files that were written to lately: many
// of them may be compressed before the archives are looked at.
const (
	maxMarks  = 16
	maxBurst  = 64 // of files that were written to within burstTime; 8 KB in a checkpoint
	burstTime = time.Minute
)

// lastMarks returns the last n marks, and those before them of a burst.
func lastMarks(all []mark, n int) []mark {
	first, since := max(0, len(all)-n), time.Now().Add(-burstTime)
	for first > 0 && len(all)-first < maxBurst && all[first-1].Time.After(since) {
		first--
	}
	return all[first:]
}

// hasUnpacked reports whether the file that the archive at path is made of exists, too: the archive
// may not be complete yet, and is not needed.
func (f *family) hasUnpacked(path string) bool {
	base := packedBase(path)
	return slices.ContainsFunc(f.all, func(c sibling) bool { return c.path == base })
}

// named returns all siblings, archives under the names of the files that they were made of.
func (f *family) named() []sibling {
	all := slices.Clone(f.all)
	for _, c := range f.archives {
		c.path, c.packed = packedBase(c.path), true
		all = append(all, c)
	}
	return all
}

// rotatedName returns the name that rotation gave the file, without the suffix of its compression.
func (g *generation) rotatedName() string {
	switch {
	case g.contents != nil:
		return packedBase(g.name)
	case g.archive.path != "":
		return packedBase(g.archive.path)
	}
	return g.name
}

// unseenArchives opens the archives of files that were not read, or not to their end, and that are not
// among opened, which the same search has found. It reports whether some may still be written, and are
// to be looked at later.
func (s *source) unseenArchives(beside *family, before predecessor, opened []*generation) (unseen []*generation, later bool) {
	if s.f.o.Unpack == nil {
		return nil, false
	}
	for _, c := range beside.archives {
		if s.isLeftOut(c) {
			continue
		}
		if s.out == nil && (before.seen.IsZero() || s.start != Beginning || c.mtime.Before(before.seen)) {
			s.leaveOut(c)
			continue
		}
		if beside.hasUnpacked(c.path) || s.holds(c) {
			continue
		}
		g, wait := s.openArchive(c)
		archived := g != nil && s.isArchived(g, nil)
		twin := g != nil && !archived && g.hasTwin(opened)
		if g != nil && !archived && !twin && s.f.disk.ctx.Err() != nil { // it could not be compared
			g.close()
			wait = true
		}
		later = later || wait
		switch {
		case wait:
		case g == nil:
			s.leaveOut(c)
		case twin: // the next search compares it again: the other file may be gone before it is held
			g.close()
		case archived || c.mtime.Before(s.seen.Truncate(time.Second)):
			s.leaveOut(c)
			g.close()
		case s.mayGrow(g): // it may be the archive of a known file
			later = true
			g.close()
		default:
			g.real = c.of
			g.contents.release()
			g.closeIfCrowded()
			unseen = append(unseen, g)
		}
	}
	return unseen, later
}

// forgetLeftOut removes the archives from s.leftOut that no longer exist. beside must be settled: while
// files are renamed, an archive may be missing in it.
func (s *source) forgetLeftOut(beside *family) {
	if !beside.partial {
		maps.DeleteFunc(s.leftOut, func(id fileID, at time.Time) bool {
			return !slices.ContainsFunc(beside.archives, func(c sibling) bool { return c.id == id && c.mtime.Equal(at) })
		})
	}
}

// isLeftOut reports whether c is an archive that is not to be read.
func (s *source) isLeftOut(c sibling) bool {
	at, found := s.leftOut[c.id]
	return found && at.Equal(c.mtime)
}

// holds reports whether the source has c open.
func (s *source) holds(c sibling) bool {
	return slices.ContainsFunc(s.held(), func(g *generation) bool { return g.id == c.id })
}

// openArchive opens an archive. It returns nil if there is nothing to read in it. If wait is set, it
// may be complete later.
func (s *source) openArchive(c sibling) (g *generation, wait bool) {
	g, err := s.f.disk.openPacked(c.path)
	switch {
	case isDamage(err):
		defer g.close()
		if s.mayGrow(g) {
			return nil, true
		}
		s.damaged(g, err)
		s.leaveOut(c)
		return nil, false
	case errors.Is(err, errForeignPacking):
		s.foreign = filepath.Base(c.path)
		return nil, false
	case err != nil:
		s.attention = true
		return nil, tooMany(err) || errors.Is(err, fs.ErrNotExist) || s.f.disk.ctx.Err() != nil
	case g.id != c.id || !g.mtime.Equal(c.mtime): // it was replaced, perhaps by one with its inode
		g.close()
		s.attention = true
		return nil, true
	case len(g.head) == 0:
		g.close()
		return nil, false
	case s.mayGrow(g):
		g.close()
		return nil, true
	}
	return g, false
}

// isArchived reports whether g is the archive of a file that the source reads, has read or must not
// read; truncated is one that is left out, since its old content is searched. If lines were added to a
// file after it was read, g is set to continue with them. The result false is not valid if the run ends
// meanwhile.
func (s *source) isArchived(g, truncated *generation) bool {
	open := slices.DeleteFunc(s.held(), func(o *generation) bool {
		return o == truncated || o.contents != nil || o.readHead() != nil || len(o.head) == 0 // which may have been empty when it was opened
	})
	for _, o := range open {
		if info, err := o.Stat(); err == nil && info.ModTime().Equal(g.mtime) && bytes.HasPrefix(g.head, o.head) {
			o.archive = sibling{path: g.name, id: g.id}
			return true
		}
	}
	closed := s.f.files.marksOf(s)
	for _, m := range closed {
		if m.Len > 0 && m.Time.Equal(g.mtime) && m.sameBeginning(g) {
			return true
		}
	}
	// the program that made the archive has not kept the time
	for _, o := range open {
		info, err := o.Stat()
		if err != nil || !bytes.HasPrefix(g.head, o.head) && !bytes.HasPrefix(o.head, g.head) {
			continue
		}
		if _, same := g.sameUpTo(o, info.Size()); same || g.continues(o) || g.isPartOf(o, info.Size()) {
			o.archive = sibling{path: g.name, id: g.id}
			return true
		}
	}
	for _, m := range closed {
		if m.Len == 0 || !m.holds(g) {
			continue
		}
		var next [1]byte
		if n, _ := g.ReadAt(next[:], m.Off); n == 0 {
			return s.f.disk.ctx.Err() == nil
		}
		if m.Len == headSize && m.Off > 0 { // else too few bytes are equal
			return g.seek(m.Off) != nil && s.f.disk.ctx.Err() == nil
		}
	}
	return false
}

// hasTwin reports whether one of the plain files in all begins with all that the archive g holds: a
// program that shifts the names of rotated files before it compresses gives the archive another number,
// and removes the file later.
func (g *generation) hasTwin(all []*generation) bool {
	return slices.ContainsFunc(all, func(o *generation) bool {
		return o != nil && o.contents == nil && bytes.HasPrefix(o.head, g.head) && g.isPartOf(o, o.size)
	})
}

// isPartOf reports whether all that the archive g holds is the beginning of o, which has size bytes:
// lines may have been added to o after it was compressed.
func (g *generation) isPartOf(o *generation, size int64) bool {
	var next [1]byte
	if _, err := g.ReadAt(next[:], size); err != io.EOF || g.contents.size > size {
		return false
	}
	_, same := g.sameUpTo(o, g.contents.size)
	return same
}

// archivesSince opens the archives that a checkpoint does not list, as far as they may be read.
// last is the file that was read last. It reports whether some may still be written.
func (s *source) archivesSince(saved savedSource, beside *family, last mark) (found []*generation, later bool) {
	if s.f.o.Unpack == nil {
		return nil, false
	}
	listed := saved.fingerprints()
	if s.leftOut == nil {
		s.leftOut = make(map[fileID]time.Time)
	}
	for _, c := range beside.archives {
		reads := slices.ContainsFunc(saved.Reading, func(r savedReading) bool { return r.Ino == c.id.ino })
		switch {
		case s.isLeftOut(c):
			continue
		case reads:
		case saved.Archives && slices.Contains(listed, c.fingerprint()), !saved.Archives && c.mtime.Before(last.Time):
			s.leftOut[c.id] = c.mtime
			continue
		case beside.hasUnpacked(c.path):
			continue
		}
		g, wait := s.openArchive(c)
		later = later || wait
		if g != nil {
			g.real = c.of
			g.contents.release()
			g.closeIfCrowded()
			found = append(found, g)
		}
	}
	slices.SortStableFunc(found, func(a, b *generation) int { return a.mtime.Compare(b.mtime) })
	return found, later
}

// leaveArchive reports whether the archive of the file of r, which was read to its end, is in all. It
// is not to be read.
func (s *source) leaveArchive(all []*generation, r savedReading) bool {
	for i, g := range all {
		if g != nil && r.Size == 0 && r.Len > 0 && r.Time.Equal(g.mtime) && r.sameBeginning(g) {
			s.leftOut[g.id] = g.mtime
			all[i] = nil
			g.close()
			return true
		}
	}
	return false
}

// claimArchive removes the archive of the file of m from all, which are sorted by time, and returns
// it; nil if it is missing. broken is an archive that begins like the file and is damaged before
// the place.
func claimArchive(all []*generation, m mark) (found, broken *generation) {
	since := m.Time.Truncate(time.Second)
	// the file itself, which was being unpacked; its own archive; one whose time was changed
	for _, likely := range []func(g *generation) bool{
		func(g *generation) bool { return g.id.ino == m.Ino },
		func(g *generation) bool { return g.id.ino != m.Ino && !g.mtime.Before(since) },
		func(g *generation) bool { return g.id.ino != m.Ino && g.mtime.Before(since) },
	} {
		for i, g := range all {
			if g == nil || m.Len == 0 || !likely(g) || !m.sameBeginning(g) {
				continue
			}
			if m.holds(g) {
				all[i] = nil
				return g, nil
			}
			if broken == nil && g.contents.err != nil {
				broken = g
				continue
			}
			g.contents.release()
		}
	}
	return nil, broken
}

// A cutArchive is an archive that ends too soon.
type cutArchive struct {
	size  int64
	since time.Time // when it was first seen with that size
}

// mayGrow reports whether the archive g, which ends too soon, may still be written: it has grown
// lately, and its last change is not long ago. If it has grown, it is unpacked again.
func (s *source) mayGrow(g *generation) bool {
	d, cut := errors.AsType[damage](g.contents.err)
	info, err := g.Stat()
	if err != nil || !cut || !d.cut {
		return false
	}
	known, ok := s.cut[g.id]
	if !ok || known.size != info.Size() {
		if known = (cutArchive{info.Size(), time.Now()}); s.cut == nil {
			s.cut = make(map[fileID]cutArchive)
		}
		s.cut[g.id] = known
	}
	grows := time.Since(known.since) < linger && time.Since(info.ModTime()) < linger
	switch {
	case !grows:
		delete(s.cut, g.id)
	case info.Size() != g.contents.packed:
		g.contents.release()
	}
	s.attention = s.attention || grows
	return grows
}

// damaged reports that the rest of an archive cannot be unpacked because of err, and ends it there.
func (s *source) damaged(g *generation, err error) {
	at := g.contents.at
	name := filepath.Base(g.name)
	size, known := g.damagedSize(err)
	g.contents.size, g.contents.err = at, nil
	g.size = at
	s.dirty = true
	switch {
	case errors.Is(err, errBomb):
		s.lose(Event{Message: fmt.Sprintf("%s unpacks to more than %d bytes, more than a log would: what comes after them is left out", name, at)})
	case known && size == at:
		s.notify(Event{Message: fmt.Sprintf("%s is damaged (%v): all of its %d bytes are read, but some of them may be wrong", name, err, at)})
	case known && size > at:
		s.lose(Event{Message: fmt.Sprintf("%s is damaged after %d bytes of its contents (%v): the other %d bytes are lost", name, at, err, size-at), Lost: size - at})
	default:
		s.lose(Event{Message: fmt.Sprintf("%s is damaged after %d bytes of its contents (%v): what came after them is lost", name, at, err)})
	}
}

// lostFile reports that the file of the checkpoint is neither there nor in an archive, or in a
// broken one only.
func (s *source) lostFile(last savedReading, broken *generation) {
	since := last.Time.Format(time.DateTime)
	lost := max(0, last.Size-last.Off)
	var message strings.Builder
	fmt.Fprintf(&message, "the file that was read up to byte %d is gone", last.Off)
	if broken != nil {
		size, known := broken.damagedSize(broken.contents.err)
		message.Reset()
		fmt.Fprintf(&message, "the file that was read up to byte %d is in %s, which is damaged after %d bytes of its contents", last.Off, filepath.Base(broken.name), broken.contents.at)
		if known && size >= last.Off {
			fmt.Fprintf(&message, "; its last %d bytes are lost", size-last.Off)
			s.lose(Event{Message: message.String(), Lost: size - last.Off})
			return
		}
	} else if s.foreign != "" {
		fmt.Fprintf(&message, ", and %s is %v", s.foreign, errForeignPacking)
	}
	fmt.Fprintf(&message, "; lines written to it since %s are lost", since)
	if lost > 0 {
		fmt.Fprintf(&message, ", at least %d bytes", lost)
	}
	s.lose(Event{Message: message.String(), Lost: lost})
}

// unpackedCopies appends to copies the archives of copies of g, which was truncated. rest is the
// index of the copy that holds all bytes that were read of g, or -1; continued reports whether there
// is one. now is the file that has the name. The only error is errLater.
func (s *source) unpackedCopies(beside *family, g, now *generation, copies []*generation, rest int) (all []*generation, last int, continued bool, err error) {
	if s.f.o.Unpack == nil {
		return copies, rest, false, nil
	}
	for _, c := range beside.archives {
		if s.isLeftOut(c) || beside.hasUnpacked(c.path) || s.holds(c) {
			continue
		}
		copied, wait := s.openArchive(c)
		if wait {
			return copies, rest, continued, errLater
		}
		if copied == nil {
			continue
		}
		var next [1]byte
		n, continues := 0, g.look > 0 && rest < 0 && copied.continues(g)
		if continues {
			n, _ = copied.ReadAt(next[:], g.off)
		}
		archived := !continues && now != nil && now.id == g.id && s.isArchived(copied, g)
		twin := !continues && !archived && copied.hasTwin(append(slices.Clone(copies), now))
		if !archived && !twin && n == 0 && s.f.disk.ctx.Err() != nil { // it could not be compared
			copied.close()
			return copies, rest, continued, errLater
		}
		switch {
		case continues:
			continued = true
			if n > 0 && copied.seek(g.off) == nil && s.f.files.claim(copied, s) == nil {
				rest = len(copies)
				copies = append(copies, copied)
				continue
			}
			s.leaveOut(c)
		case now == nil || now.id != g.id, twin:
		case archived:
			s.leaveOut(c)
		case s.f.files.claim(copied, s) == nil:
			copies = append(copies, copied)
			continue
		}
		copied.close()
	}
	return copies, rest, continued, nil
}

// leaveOut records that the archive c is not to be read.
func (s *source) leaveOut(c sibling) {
	if s.leftOut == nil {
		s.leftOut = make(map[fileID]time.Time)
	}
	s.leftOut[c.id] = c.mtime
}
