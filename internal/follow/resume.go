package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/lineage"
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
	known := s.lineage.Entry(contentsOf(s.held()))
	all := savedSource{Path: s.path, RealPath: s.firstRealPath(), Read: known.Read, Beside: known.Beside, ListsArchives: known.ListsArchives}
	sinks, replays := []*outlet{s.out}, []bool{false}
	if s.out != nil {
		all.Context, replays[0] = s.out.context()
	}
	for _, g := range s.reading() {
		m, err := g.mark()
		if err != nil {
			return
		}
		r := savedReading{Mark: m, Sink: slices.Index(sinks, g.out)}
		if r.Sink < 0 {
			r.Sink = len(sinks)
			context, replay := g.out.context()
			sinks, replays, r.Context = append(sinks, g.out), append(replays, replay), context
		}
		if g.size > g.off {
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
	// nothing was looked at
	if len(saved.Reading) == 0 && saved.Context == "" && saved.Beside == nil {
		s.saved, s.start, s.since = nil, Beginning, s.f.saver.since
		return s.begin()
	}
	s.realPath = saved.RealPath
	now, folder, beside, err := s.openAll()
	if errors.Is(err, errLater) {
		s.attention = true
		return false, nil
	}
	last, older := saved.places()
	r, later := s.lineage.Resume(s.f.disk.ctx, opener{s}, saved.forLineage(), folder)
	if later != nil {
		r.Cancel()
		s.attention = s.attention || errors.Is(later, lineage.ErrLater)
		return false, nil
	}
	defer r.Close()
	found := fileOf(r.Found.Content)
	if found == nil && last.Len > 0 && s.searches < maxTries && s.changes(beside, folder.Files, now) {
		s.searches++
		s.attention = true
		return false, nil
	}
	if found == nil && now == nil && !(errors.Is(err, fs.ErrNotExist) && r.HasSuccessor()) {
		s.noFile(err)
		return false, nil
	}
	if r.FindOlder(s.f.disk.ctx) != nil { // some may be missing
		r.Cancel()
		return false, nil
	}
	s.saved, s.start = nil, Beginning
	if s.out, err = s.sink(); err != nil {
		r.Cancel()
		return false, err
	}
	s.lineage.Begun = true
	if saved.Context != "" && s.out.Restore != nil {
		if err := s.out.Restore([]byte(saved.Context)); err != nil {
			s.notify(Event{Message: fmt.Sprintf("the context in the checkpoint cannot be used (%v); the file is read again", err), Again: true})
			last.Replay = true
		}
	}
	r.Record()
	if err := s.resumeOlder(r.Older, older); err != nil {
		closeAll([]*generation{found})
		return false, err
	}
	s.dirty = true
	if found != nil {
		if !s.claim(found) {
			s.attention = true
			return false, nil
		}
		found.continueAt(r.Found, last)
		return true, s.makeCurrent(found)
	}
	if last.Len > 0 {
		step := r.FindCopy()
		copied := fileOf(step.Content)
		s.lostTrack(now, last, copied, fileOf(r.Broken))
		if copied != nil && s.claim(copied) {
			copied.continueAt(step, last)
			return true, s.makeCurrent(copied)
		}
	}
	g, err := s.next(lineage.Predecessor{})
	if g == nil {
		s.noFile(err)
		return false, nil
	}
	if err := s.makeCurrent(g); err != nil || last.Len == 0 && len(saved.Reading) > len(older) {
		return err == nil, err // the first lines of a file that was empty
	}
	return true, s.nextSink()
}

// places returns the place of the file that had the name, or was to be read before the one that has
// it, and those of the others.
func (saved *savedSource) places() (last savedReading, older []savedReading) {
	older = saved.Reading
	if n := len(older); n > 0 && older[n-1].Sink == 0 {
		last, older = older[n-1], older[:n-1]
	}
	return last, older
}

// forLineage returns the part of the entry that concerns the files.
func (saved *savedSource) forLineage() lineage.Entry {
	c := lineage.Entry{Read: saved.Read, Beside: saved.Beside, ListsArchives: saved.ListsArchives}
	for _, r := range saved.Reading {
		c.Reading = append(c.Reading, lineage.Place{Mark: r.Mark, Size: r.Size})
		c.Current = r.Sink == 0
	}
	return c
}

// openAll opens the file that the name leads to, and its siblings, as they are at one moment. The
// error is errLater if not all can be opened at the moment, or that of the file of the name.
func (s *source) openAll() (now *generation, all lineage.Folder, beside *family, err error) {
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
		// a file that was renamed or compressed meanwhile may be missing
		if try == maxTries || s.settled(now, beside) {
			return now, all, beside, err
		}
		lineage.CloseAll(all.Files)
	}
}

// changes reports whether files are being renamed, compressed or copied: the copy of a file that
// was truncated just now may be missing in all, or not be complete. now is the file that has the
// name.
func (s *source) changes(beside *family, all []lineage.Content, now *generation) bool {
	return !s.isCurrent(beside) || slices.ContainsFunc(all, func(c lineage.Content) bool {
		g := fileOf(c)
		if g == nil || g == now {
			return false
		}
		info, err := g.Stat()
		return err == nil && info.Size() != g.size
	})
}

// continueAt continues with g at the place of r, which is that of step.
func (g *generation) continueAt(step lineage.Step, r savedReading) {
	g.silent = r.Quiet
	if r.Replay && !r.Held {
		g.silent = max(r.Off, r.Quiet)
	}
	g.since = g.silent
	if !r.Replay {
		g.startAt(step)
	}
}

// resumeOlder continues with the files of older, which had already lost their name. Each sink that
// differed from that of the name gets its context back, even if its file is gone: then it prints
// its held records.
func (s *source) resumeOlder(files []lineage.Older, older []savedReading) error {
	sinks := make(map[int]*outlet)
	for i, r := range older {
		g := fileOf(files[i].Content)
		if files[i].Lost && r.Size > r.Off {
			s.reportGone("a rotated file", r, fileOf(files[i].Broken))
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
				for _, f := range files[i:] {
					lineage.CloseAll([]lineage.Content{f.Content})
				}
				return err
			}
			if r.Sink > 0 {
				sinks[r.Sink] = out
			}
			if r.Context != "" && out.Restore != nil && out.Restore([]byte(r.Context)) != nil {
				r.Replay = true
			}
		}
		if g != nil && s.claim(g) {
			g.out = out
			g.continueAt(files[i].Step, r)
			s.old = append(s.old, g)
		}
	}
	for _, out := range sinks {
		if err := s.release(out, s.old); err != nil {
			return err
		}
	}
	return nil
}

// lostTrack reports why reading does not continue at the place of the checkpoint. copied is a copy
// of what the file held, broken a damaged archive.
func (s *source) lostTrack(now *generation, last savedReading, copied, broken *generation) {
	if (now == nil || now.id.Ino != last.Ino) && copied == nil {
		s.reportGone("the file", last, broken)
		return
	}
	if now != nil && now.id.Ino == last.Ino {
		s.truncatedID = now.id
	}
	what := fmt.Sprintf("no longer holds the %d bytes that were read", last.Off)
	if last.Off == 0 {
		what = "no longer holds what was to be read"
	}
	if copied != nil {
		s.notify(Event{Message: what + ": it was copied and truncated; the copy is read on"})
		return
	}
	s.lose(Event{Message: what + ": it was truncated or replaced; it is read from its beginning", Lost: max(0, last.Size-last.Off)})
}

// hasMeta reports whether a name contains characters of a pattern.
func hasMeta(name string) bool { return strings.ContainsAny(name, `*?[`) }
