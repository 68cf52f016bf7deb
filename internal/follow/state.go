package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// unsaved reports whether something has changed since the last snapshot.
func (s *source) unsaved() bool {
	if s.out != nil && s.out.Changed != nil && s.out.Changed() {
		s.dirty = true
	}
	return s.dirty
}

// snapshot passes the current state of the source to the saver. If a part of it cannot be
// determined now, the saver keeps the previous state.
func (s *source) snapshot() {
	if s.saved != nil { // its files have not been searched yet
		s.dirty = false
		s.f.saver.put(*s.saved, 0)
		return
	}
	all := savedSource{Path: s.path, Real: s.realName(), Read: s.readFiles[max(0, len(s.readFiles)-maxKnown):]}
	all.Beside, all.Archives = s.knownSiblings()
	if s.f.o.Unpack != nil { // files that are there now may be compressed before the next run
		all.Read = slices.Concat(s.f.files.lastGone(s, maxKnown), lastMarks(s.readFiles, maxKnown))
	}
	sinks, replays := []*outlet{s.out}, []bool{false}
	if s.out != nil {
		all.Context, replays[0] = s.out.context()
	}
	for _, g := range s.reading() {
		m, err := g.mark()
		if err != nil {
			return
		}
		r := savedReading{mark: m, Sink: slices.Index(sinks, g.out)}
		if r.Sink < 0 {
			r.Sink = len(sinks)
			context, replay := g.out.context()
			sinks, replays, r.Context = append(sinks, g.out), append(replays, replay), context
		}
		if s.f.o.Unpack != nil && g.size > g.off {
			r.Size = g.size
		}
		if g.silent > g.off {
			r.Quiet = g.silent
		}
		if r.Replay = replays[r.Sink]; r.Replay && g.out.silent() {
			r.Held, r.Quiet = true, g.since
		}
		all.Reading = append(all.Reading, r)
	}
	s.dirty = false
	s.f.saver.put(all, s.written())
}

// written returns the offset in the output after the last byte of the source.
func (s *source) written() (pos int64) {
	for _, g := range s.reading() {
		if g.out != nil {
			pos = max(pos, g.out.written())
		}
	}
	if s.out != nil {
		pos = max(pos, s.out.written())
	}
	return pos
}

// reading returns the files that the source reads, the oldest first: the rotated ones and the
// current one.
func (s *source) reading() []*generation {
	all := slices.Clone(s.old)
	if s.cur != nil {
		all = append(all, s.cur)
	}
	return all
}

// resume continues at the place of the checkpoint, and reports whether there is a file to read.
func (s *source) resume() (bool, error) {
	saved := *s.saved
	if len(saved.Reading) == 0 && saved.Context == "" {
		s.saved, s.start, s.since = nil, Beginning, s.f.saver.since
		return s.begin()
	}
	s.real = saved.Real
	now, all, beside, err := s.openAll()
	if errors.Is(err, errLater) {
		s.attention = true
		return false, nil
	}
	defer func() { closeAll(all) }()
	last, older := savedReading{}, saved.Reading
	if n := len(older); n > 0 && older[n-1].Sink == 0 {
		last, older = older[n-1], older[:n-1]
	}
	archives, later := s.archivesSince(saved, beside, last.mark)
	defer func() { closeAll(archives) }()
	if later {
		s.attention = true
		return false, nil
	}
	found, broken := claim(all, last.mark), (*generation)(nil)
	if found == nil {
		found, broken = claimArchive(archives, last.mark)
	}
	if s.f.disk.ctx.Err() != nil {
		closeAll([]*generation{found})
		return false, nil
	}
	if found == nil && last.Len > 0 && s.searches < maxTries && s.changes(beside, all, now) {
		s.searches++
		s.attention = true
		return false, nil
	}
	if found == nil && now == nil && !(errors.Is(err, fs.ErrNotExist) && saved.hasSuccessor(append(all, archives...), last.mark)) {
		s.noFile(err)
		return false, nil
	}
	if broken != nil { // its lines were printed already
		s.leftOut[broken.id] = broken.mtime
	}
	files := s.claimOlder(all, archives, older)
	if s.f.disk.ctx.Err() != nil { // some may be missing
		closeAll(append(files, found))
		return false, nil
	}
	s.saved, s.start = nil, Beginning
	if s.out, err = s.sink(); err != nil {
		closeAll(append(files, found))
		return false, err
	}
	if saved.Context != "" && s.out.Restore != nil {
		if err := s.out.Restore([]byte(saved.Context)); err != nil {
			s.notify(Event{Message: fmt.Sprintf("the context in the checkpoint cannot be used (%v); the file is read again", err), Again: true})
			last.Replay = true
		}
	}
	s.ignoreSaved(saved, all, last.Time) // before the marks of younger files are added
	if err := s.resumeOlder(files, older); err != nil {
		closeAll([]*generation{found})
		return false, err
	}
	if len(beside.archives) > 0 && !found.wasArchive(last.mark) {
		s.seen = last.Time
	}
	s.savedBeside, s.savedArchives = saved.Beside, saved.Archives
	s.dirty = true
	if found != nil {
		s.f.files.forgetSaved(s, last.mark)
		if err := found.resume(last); err != nil || s.f.files.claim(found, s) != nil {
			found.close()
			return false, nil
		}
		return true, s.makeCurrent(found)
	}
	if last.Len > 0 {
		copied := claimCopy(all, last.mark)
		s.lostTrack(now, last, copied, broken)
		switch {
		case copied == nil:
		case s.f.files.claim(copied, s) != nil:
			copied.close()
		case copied.resume(last) == nil:
			return true, s.makeCurrent(copied)
		default:
			s.unclaim([]*generation{copied})
		}
	}
	g, err := s.next(predecessor{})
	if g == nil {
		s.noFile(err)
		return false, nil
	}
	if err := s.makeCurrent(g); err != nil || last.Len == 0 && len(saved.Reading) > len(older) {
		return err == nil, err // the first lines of a file that was empty
	}
	return true, s.nextSink()
}

// openAll opens the file that the name leads to, and its siblings, as they are at one moment. all
// contains now. The error is errLater if not all can be opened at the moment.
func (s *source) openAll() (now *generation, all []*generation, beside *family, err error) {
	for try := 0; ; try++ {
		now, err = s.f.disk.openGeneration(s.path)
		var later error
		beside, later = s.siblings()
		if later != nil {
			closeAll([]*generation{now})
			return nil, nil, nil, later
		}
		if now != nil {
			all = append(all, now)
		}
		for _, c := range beside.all {
			g, err := s.f.disk.openGeneration(c.path)
			switch {
			case tooMany(err): // a file that is left out would be taken for a new file later
				closeAll(all)
				return nil, nil, nil, errLater
			case err != nil:
			case now != nil && g.id == now.id:
				g.close()
			default:
				g.real = c.of
				g.closeIfCrowded()
				all = append(all, g)
			}
		}
		// a file that was renamed or compressed meanwhile may be missing
		if try == maxTries || s.settled(now, beside) {
			return now, all, beside, err
		}
		closeAll(all)
		all = nil
	}
}

// claim removes the file of m from all and returns it; nil if it is missing. The device is not
// compared, since its number may change when the machine is restarted. A file that was empty is
// never found: it cannot be distinguished from a later file with the same inode.
func claim(all []*generation, m mark) *generation {
	for i, g := range all {
		if g != nil && m.Len > 0 && g.id.ino == m.Ino && m.holds(g) {
			all[i] = nil
			return g
		}
	}
	return nil
}

// changes reports whether files are being renamed, compressed or copied: the copy of a file that was
// truncated just now may be missing in all, or not be complete. now is the file that has the name.
func (s *source) changes(beside *family, all []*generation, now *generation) bool {
	return !s.isCurrent(beside) || slices.ContainsFunc(all, func(g *generation) bool {
		if g == nil || g == now {
			return false
		}
		info, err := g.Stat()
		return err == nil && info.Size() != g.size
	})
}

// claimCopy is claim for a copy that was made after the mark: one with more lines, or else one of what
// was read.
func claimCopy(all []*generation, m mark) *generation {
	best := -1
	older := func(a, b *generation) bool {
		if more := a.size > m.Off; more != (b.size > m.Off) {
			return more
		}
		return a.mtime.Before(b.mtime)
	}
	for i, g := range all {
		if g != nil && m.Len > 0 && g.id.ino != m.Ino && g.size >= m.Off && !g.mtime.Before(m.Time) && m.holds(g) && (best < 0 || older(g, all[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	g := all[best]
	all[best] = nil
	return g
}

// resume sets the read offset to the place of r.
func (g *generation) resume(r savedReading) error {
	g.silent = r.Quiet
	if r.Replay && !r.Held {
		g.silent = max(r.Off, r.Quiet)
	}
	g.since = g.silent
	if r.Replay {
		return nil
	}
	return g.seek(r.Off)
}

// wasArchive reports whether g, which was found by m, was an archive when m was taken. The time of
// m is then perhaps that of the compression: later than those of files after it.
func (g *generation) wasArchive(m mark) bool {
	return g != nil && g.contents != nil && g.id.ino == m.Ino
}

// claimOlder removes the files of older from all and archives and returns them; nil for each that is
// missing, or whose archive is not to be read.
func (s *source) claimOlder(all, archives []*generation, older []savedReading) (files []*generation) {
	for _, r := range older {
		g := claim(all, r.mark)
		if g == nil && !s.leaveArchive(archives, r) {
			g, _ = claimArchive(archives, r.mark)
		}
		files = append(files, g)
	}
	return files
}

// resumeOlder continues with the files of older, which had already lost their name. Each sink that
// differed from that of the name gets its context back, even if its file is gone: then it prints its
// held records.
func (s *source) resumeOlder(files []*generation, older []savedReading) error {
	for i, r := range older {
		if files[i] != nil {
			s.f.files.forgetSaved(s, r.mark)
		}
	}
	sinks := make(map[int]*outlet)
	for i, r := range older {
		g := files[i]
		if g == nil {
			s.f.files.addGone(s, r.mark)
		}
		if g == nil && r.Context == "" {
			continue
		}
		out := s.out
		if r.Sink > 0 {
			out = sinks[r.Sink]
		}
		if out == nil || r.Sink == 0 && r.Replay {
			var err error
			if out, err = s.sink(); err != nil {
				closeAll(files[i:])
				return err
			}
			if r.Sink > 0 {
				sinks[r.Sink] = out
			}
			if r.Context != "" && out.Restore != nil && out.Restore([]byte(r.Context)) != nil {
				r.Replay = true
			}
		}
		if g != nil {
			s.resumeOld(g, r, out)
		}
	}
	for _, out := range sinks {
		if err := s.release(out, s.old); err != nil {
			return err
		}
	}
	return nil
}

// resumeOld continues with a file that had already lost its name. Its lines go to out.
func (s *source) resumeOld(g *generation, r savedReading, out *outlet) {
	g.out = out
	if err := g.resume(r); err != nil || s.f.files.claim(g, s) != nil {
		g.close()
		return
	}
	s.old = append(s.old, g)
}

// lostTrack reports why reading does not continue at the place of the checkpoint. copied is a copy of
// what the file held, broken a damaged archive.
func (s *source) lostTrack(now *generation, last savedReading, copied, broken *generation) {
	if (now == nil || now.id.ino != last.Ino) && copied == nil {
		s.lostFile(last, broken)
		return
	}
	if now != nil && now.id.ino == last.Ino {
		s.truncatedID = now.id
	}
	what := fmt.Sprintf("no longer holds the %d bytes that were read", last.Off)
	if last.Off == 0 {
		what = "no longer holds what was to be read"
	}
	e := Event{Message: what + ": it was truncated or replaced; it is read from its beginning", Lost: max(0, last.Size-last.Off)}
	if copied != nil {
		e.Lost = 0
		s.notify(e)
		return
	}
	s.lose(e)
}

// hasMeta reports whether a name contains characters of a pattern.
func hasMeta(name string) bool { return strings.ContainsAny(name, `*?[`) }
