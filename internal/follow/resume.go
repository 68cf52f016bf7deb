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

// snapshot passes the state of the source to the saver. If a part cannot be determined now, the
// saver keeps the previous state.
func (s *source) snapshot() {
	if s.origin.saved != nil { // its files have not been searched yet
		s.dirty = false
		s.f.saver.put(*s.origin.saved, 0)
		return
	}
	known := s.search.lineage.Entry(contentsOf(s.held()))
	all := savedSource{Path: s.path, RealPath: s.search.firstRealPath(s.cur), Read: known.Read, Beside: known.Beside, ListsArchives: known.ListsArchives}
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
	pos := s.written()
	if s.out != nil {
		pos = max(pos, s.out.written())
	}
	s.f.saver.put(all, pos)
}

// A resumption continues at the places saved in a checkpoint.
type resumption struct {
	s     *source
	saved savedSource    // entry of the source in the checkpoint
	last  savedReading   // place in the file that had the followed name; zero: none
	older []savedReading // places in files that had lost the followed name

	now    *generation // file with the followed name
	nowErr error       // why now is nil
	folder lineage.Folder
	beside *family
	search *lineage.Resumption
}

// resume continues at the place of the checkpoint. It reports whether there is a file to read.
func (s *source) resume() (bool, error) {
	saved := *s.origin.saved
	// the earlier run has not looked at any file
	if len(saved.Reading) == 0 && saved.Context == "" && saved.Beside == nil {
		s.origin.saved, s.origin.start, s.origin.since = nil, Beginning, s.f.saver.since
		return s.begin()
	}
	r := &resumption{s: s, saved: saved}
	r.last, r.older = saved.places()
	if !r.find() {
		return false, nil
	}
	defer r.search.Close()
	s.origin.saved, s.origin.start = nil, Beginning
	if err := r.openSink(); err != nil {
		r.search.Cancel()
		return false, err
	}
	found := fileOf(r.search.Found.Content)
	r.search.Record()
	if err := r.readOlder(); err != nil {
		closeAll([]*generation{found})
		return false, err
	}
	s.dirty = true
	if found != nil {
		if !s.search.claim(found) {
			s.attention = true
			return false, nil
		}
		found.continueAt(r.search.Found, r.last)
		return true, s.makeCurrent(found)
	}
	return r.readNext()
}

// find finds the files of the checkpoint. It returns false if the search must be repeated later.
func (r *resumption) find() bool {
	s := r.s
	s.search.realPath = r.saved.RealPath
	r.now, r.folder, r.beside, r.nowErr = s.search.openAll()
	if errors.Is(r.nowErr, errLater) {
		s.attention = true
		return false
	}
	var later error
	r.search, later = s.search.lineage.Resume(s.f.disk.ctx, opener{&s.search}, r.saved.forLineage(), r.folder)
	if later != nil {
		r.search.Cancel()
		s.attention = s.attention || errors.Is(later, lineage.ErrLater)
		return false
	}
	if !r.isComplete() {
		r.search.Close()
		return false
	}
	if r.search.FindOlder(s.f.disk.ctx) != nil { // older files may be missing
		r.search.Cancel()
		r.search.Close()
		return false
	}
	return true
}

// isComplete reports whether the last file was found, or cannot be found any more.
func (r *resumption) isComplete() bool {
	s := r.s
	if r.search.Found.Content != nil {
		return true
	}
	if r.last.Len > 0 && s.origin.searches < maxTries && s.search.changes(r.beside, r.folder.Files, r.now) {
		s.origin.searches++
		s.attention = true
		return false
	}
	if r.now == nil && !(errors.Is(r.nowErr, fs.ErrNotExist) && r.search.HasSuccessor()) {
		s.noFile(r.nowErr)
		return false
	}
	return true
}

// openSink opens the source's sink, with the context of the checkpoint.
func (r *resumption) openSink() (err error) {
	s := r.s
	if s.out, err = s.sink(); err != nil {
		return err
	}
	s.search.lineage.Begun = true
	if r.saved.Context != "" && s.out.Restore != nil {
		if err := s.out.Restore([]byte(r.saved.Context)); err != nil {
			s.notify(Event{Message: fmt.Sprintf("the context in the checkpoint cannot be used (%v); the file is read again", err), Again: true})
			r.last.Replay = true
		}
	}
	return nil
}

// readNext is called if the last file was not found. It continues with a copy of that file, or else
// with the next file.
func (r *resumption) readNext() (bool, error) {
	s := r.s
	if r.last.Len > 0 {
		step := r.search.FindCopy()
		copied := fileOf(step.Content)
		r.reportLost(copied, fileOf(r.search.Broken))
		if copied != nil && s.search.claim(copied) {
			copied.continueAt(step, r.last)
			return true, s.makeCurrent(copied)
		}
	}
	g, err := s.next(lineage.Predecessor{})
	if g == nil {
		s.noFile(err)
		return false, nil
	}
	if err := s.makeCurrent(g); err != nil || r.last.Len == 0 && len(r.saved.Reading) > len(r.older) {
		// the file was empty at the checkpoint, and its sink has no lines yet
		return err == nil, err
	}
	return true, s.nextSink()
}

// places returns the last place and the places in older files. The last place is in the file that
// had the followed name, or in a file to be read before that file. It is zero if the checkpoint has
// no such place.
func (saved *savedSource) places() (last savedReading, older []savedReading) {
	older = saved.Reading
	if n := len(older); n > 0 && older[n-1].Sink == 0 {
		last, older = older[n-1], older[:n-1]
	}
	return last, older
}

func (saved *savedSource) forLineage() lineage.Entry {
	c := lineage.Entry{Read: saved.Read, Beside: saved.Beside, ListsArchives: saved.ListsArchives}
	for _, r := range saved.Reading {
		c.Reading = append(c.Reading, lineage.Place{Mark: r.Mark, Size: r.Size})
		c.Current = r.Sink == 0
	}
	return c
}

// continueAt makes g continue at step, or at the beginning of g if r.Replay is set. Lines that were
// already printed are quiet. r is the place of g in the checkpoint.
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

// readOlder continues with the files that had already lost the followed name. It restores the
// context of their sinks, except the source's own sink. If the file of a sink is gone, the sink
// still prints the records in its context.
func (r *resumption) readOlder() error {
	s, found := r.s, r.search.Older
	sinks := make(map[int]*outlet)
	for i, r := range r.older {
		g := fileOf(found[i].Content)
		if found[i].Lost && r.Size > r.Off {
			s.search.reportGone("a rotated file", r, fileOf(found[i].Broken))
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
				for _, f := range found[i:] {
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
		if g != nil && s.search.claim(g) {
			g.out = out
			g.continueAt(found[i].Step, r)
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

// reportLost reports why reading does not continue at the place of the checkpoint. copied is a copy
// of the missing file, and broken is its damaged archive. Either may be nil.
func (r *resumption) reportLost(copied, broken *generation) {
	s, now, last := r.s, r.now, r.last
	if (now == nil || now.id.Ino != last.Ino) && copied == nil {
		s.search.reportGone("the file", last, broken)
		return
	}
	if now != nil && now.id.Ino == last.Ino {
		s.truncatedID = now.id
	}
	what := fmt.Sprintf("no longer holds the %d bytes that were read", last.Off)
	if last.Off == 0 {
		what = "no longer holds the bytes that were not read yet"
	}
	if copied != nil {
		s.notify(Event{Message: what + ": the file was copied and truncated; reading continues in the copy"})
		return
	}
	s.lose(Event{Message: what + ": the file was truncated or replaced, and is read from its beginning", Lost: max(0, last.Size-last.Off)})
}

func hasMeta(name string) bool { return strings.ContainsAny(name, `*?[`) }
