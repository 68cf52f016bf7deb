package lineage

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A Folder has the open files of a log and the listing from which they were opened.
type Folder struct {
	Family *Family
	Now    Content   // the file with the log's name, or nil
	Files  []Content // Now first, then the files of Family
}

// Open opens the files in beside, in addition to now, the file with the log's name. The error is
// ErrLater if a file cannot be opened now, because a later search would take that file for a new
// one.
func Open(open Opener, beside *Family, now Content) (Folder, error) {
	f := Folder{Family: beside, Now: now}
	if now != nil {
		f.Files = append(f.Files, now)
	}
	for _, c := range beside.Files {
		opened, err := open.Open(c)
		switch {
		case errors.Is(err, ErrLater):
			CloseAll(f.Files)
			return Folder{}, ErrLater
		case err != nil:
		case now != nil && opened.State().ID == now.State().ID:
			opened.Close()
		default:
			open.Keep(opened, c)
			f.Files = append(f.Files, opened)
		}
	}
	return f, nil
}

// An Older is the result of the search for one of the checkpoint's older files: a file that no
// longer had the log's name when the checkpoint was made.
type Older struct {
	Step           // the file or its archive; without a Content, nothing is to be read
	Broken Content // archive with the file's beginning, damaged before the read offset; nil if none
	Lost   bool    // neither the file nor its archive was found
}

// A Resumption finds the files that a checkpoint lists, so that reading can continue in them.
type Resumption struct {
	// the last file, or its archive; without a Content if missing
	Found  Step
	Broken Content // archive with the file's beginning, damaged before the read offset; nil if none
	Older  []Older // the checkpoint's older files, in their order

	log      *Log
	opener   Opener
	from     Entry
	last     Mark    // mark of Found in the checkpoint
	older    []Place // places of the files of Older in the checkpoint
	folder   Folder
	files    []Content // existing files; nil for each chosen one
	archives []Content // existing archives; nil for each chosen one
}

// Resume finds the last file of a checkpoint, or its archive, among the files and archives of f. It
// makes no records, except of archives that must not be read. The error is ErrLater if some
// archives may still be written, or the error of ctx.
func (l *Log) Resume(ctx context.Context, open Opener, from Entry, f Folder) (*Resumption, error) {
	r := &Resumption{log: l, opener: open, from: from, older: from.Reading, folder: f, files: f.Files}
	if n := len(r.older); n > 0 && from.Current {
		r.last, r.older = r.older[n-1].Mark, r.older[:n-1]
	}
	later := false
	if r.archives, later = l.archivesSince(open, from, f.Family, r.last); later {
		return r, ErrLater
	}
	if r.Found = find(r.files, r.last); r.Found.Content == nil {
		r.Found, r.Broken = r.findArchive(r.last)
	}
	return r, ctx.Err()
}

// Close closes the files that are not in Found or Older.
func (r *Resumption) Close() {
	CloseAll(r.files)
	CloseAll(r.archives)
}

// Cancel closes all files, including the files in Found and Older.
func (r *Resumption) Cancel() {
	r.Close()
	CloseAll([]Content{r.Found.Content})
	for _, o := range r.Older {
		CloseAll([]Content{o.Content})
	}
}

// FindOlder finds the checkpoint's older files. If ctx is done before the end, it returns the error
// of ctx, and some files may be missing.
func (r *Resumption) FindOlder(ctx context.Context) error {
	if r.Broken != nil { // the lines before the damage were already printed
		r.log.LeaveOut(r.Broken.State().File)
	}
	for _, p := range r.older {
		s, broken, lost := find(r.files, p.Mark), Content(nil), false
		if s.Content == nil && !r.leaveArchive(p) {
			s, broken = r.findArchive(p.Mark)
			lost = s.Content == nil
		}
		if broken != nil {
			r.log.LeaveOut(broken.State().File)
		}
		r.Older = append(r.Older, Older{s, broken, lost})
	}
	return ctx.Err()
}

// Record records the existing files that must not be read, since the checkpoint excludes them. It
// keeps the marks of missing files. The found files can then be claimed.
func (r *Resumption) Record() {
	l := r.log
	// ignoreSaved comes first, because it adds the older marks: marks must be in order, the oldest
	// first
	l.ignoreSaved(r.from, r.files, r.folder.Now, r.last.Time)
	for i, p := range r.older {
		if r.Older[i].Content != nil {
			l.forgetSaved(p.Mark)
		} else {
			l.AddGone(p.Mark)
		}
	}
	if r.Found.Content != nil {
		l.forgetSaved(r.last)
	}
	if len(r.folder.Family.Archives) > 0 && !r.last.wasArchive(r.Found.Content) {
		l.LastChange = r.last.Time
	}
	l.savedBeside, l.listsArchives = r.from.Beside, r.from.ListsArchives
}

// archivesSince opens the archives that a checkpoint does not list and that may be read. last is
// the mark of the last file. later reports whether some archives may still be written.
func (l *Log) archivesSince(open Opener, from Entry, beside *Family, last Mark) (found []Content, later bool) {
	if !l.Unpacks {
		return nil, false
	}
	listed := from.fingerprints()
	for _, f := range beside.Archives {
		reads := slices.ContainsFunc(from.Reading, func(p Place) bool { return p.Ino == f.ID.Ino })
		switch {
		case l.isLeftOut(f):
			continue
		case reads:
		case from.ListsArchives && slices.Contains(listed, f.fingerprint()), !from.ListsArchives && f.ModTime.Before(last.Time):
			l.LeaveOut(f)
			continue
		case beside.hasUnpacked(f.Path):
			continue
		}
		c, err := open.Open(f)
		switch {
		case errors.Is(err, ErrLater):
			later = true
		case err == nil:
			open.Keep(c, f)
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b Content) int { return a.State().ModTime.Compare(b.State().ModTime) })
	return found, later
}

// leaveArchive excludes the archive of the file at p from reading, if the file was read to its end.
// It reports whether it found such an archive.
func (r *Resumption) leaveArchive(p Place) bool {
	for i, c := range r.archives {
		if c == nil {
			continue
		}
		if s := c.State(); p.Size == 0 && p.Len > 0 && p.Time.Equal(s.ModTime) && p.sameBeginning(s) {
			r.log.LeaveOut(s.File)
			r.archives[i] = nil
			c.Close()
			return true
		}
	}
	return false
}

// find searches all for the file with the mark m, and removes the file from the slice. It returns
// the step that continues in the file, or an empty Step. It does not compare devices, whose numbers
// may change when the machine restarts. A file that was empty is never found: a later file may have
// the same inode.
func find(all []Content, m Mark) Step {
	for i, c := range all {
		if c != nil && m.Len > 0 && c.State().ID.Ino == m.Ino {
			if s, held := m.stepIn(c); held {
				all[i] = nil
				return s
			}
		}
	}
	return Step{}
}

// findArchive removes the archive of the file of m from r.archives, which are sorted by time, and
// returns the step that continues in the archive. If it finds none, broken is an archive that
// begins like the file and is damaged before the read offset, or nil.
func (r *Resumption) findArchive(m Mark) (found Step, broken Content) {
	since := m.Time.Truncate(time.Second)
	// first an archive that was being read, then archives no older than the file, then older
	// archives: the compressing program may have set their times
	for _, likely := range []func(s State) bool{
		func(s State) bool { return s.ID.Ino == m.Ino },
		func(s State) bool { return s.ID.Ino != m.Ino && !s.ModTime.Before(since) },
		func(s State) bool { return s.ID.Ino != m.Ino && s.ModTime.Before(since) },
	} {
		for i, c := range r.archives {
			if c == nil || m.Len == 0 || !likely(c.State()) || !m.sameBeginning(c.State()) {
				continue
			}
			if s, held := m.stepIn(c); held {
				r.archives[i] = nil
				return s, nil
			}
			if broken == nil && c.State().Damaged {
				broken = c
				continue
			}
			r.opener.Keep(c, c.State().File)
		}
	}
	return Step{}, broken
}

// FindCopy returns the step that continues in a copy of the missing file, or an empty Step. The
// copy must not be older than the file's last change. FindCopy prefers copies with further lines,
// then the oldest.
func (r *Resumption) FindCopy() Step {
	m, best := r.last, -1
	since := m.Time.Truncate(time.Second) // copies may have times of whole seconds
	older := func(a, b State) bool {
		if more := a.Size > m.Off; more != (b.Size > m.Off) {
			return more
		}
		return a.ModTime.Before(b.ModTime)
	}
	for i, c := range r.files {
		if c == nil || m.Len == 0 {
			continue
		}
		s := c.State()
		if s.ID.Ino != m.Ino && s.Size >= m.Off && !s.ModTime.Before(since) && m.holds(c) && (best < 0 || older(s, r.files[best].State())) {
			best = i
		}
	}
	if best < 0 {
		return Step{}
	}
	s, held := m.stepIn(r.files[best])
	if !held { // the copy has changed meanwhile
		return Step{}
	}
	r.files[best] = nil
	return s
}

// ignoreSaved records the files in all that must not be read, because a checkpoint lists them in
// Read or Beside. All other files are newer, whatever their time. A checkpoint of an earlier
// version has no Beside: then files last written before since must not be read, either.
func (l *Log) ignoreSaved(from Entry, all []Content, now Content, since time.Time) {
	beside := from.fingerprints()
	rest := slices.Clone(from.Read)
	for _, c := range all {
		if c == nil {
			continue
		}
		s := c.State()
		read := slices.IndexFunc(from.Read, func(m Mark) bool { return m.Ino == s.ID.Ino && m.isOf(c) })
		switch {
		case read >= 0:
			m := from.Read[read]
			rest = slices.DeleteFunc(rest, func(r Mark) bool { return r == m })
			m.Dev = s.ID.Dev
			l.AddRead(m)
			l.read = append(l.read, m)
		case c == now: // the current file
		case from.Beside == nil && s.ModTime.Before(since), slices.Contains(beside, s.fingerprint()):
			l.leave(c)
		}
	}
	// the remaining marks identify archives of files that no longer exist
	l.AddGone(slices.DeleteFunc(rest, l.isListedArchive)...)
}

// isListedArchive reports whether m is the mark of an archive that the checkpoint lists, and that
// is therefore left out.
func (l *Log) isListedArchive(m Mark) bool {
	for id, at := range l.leftOut {
		if id.Ino == m.Ino && at.Equal(m.Time) {
			return true
		}
	}
	return false
}

// HasSuccessor reports whether a file is newer than the checkpoint. Such a file is read even if no
// file has the log's name now.
func (r *Resumption) HasSuccessor() bool {
	beside := r.from.fingerprints()
	isOf := func(c Content, m Mark) bool {
		s := c.State()
		if s.Packed {
			return m.Len > 0 && m.holds(c)
		}
		return m.Ino == s.ID.Ino && m.holds(c) && (m.Len > 0 || s.Size == 0)
	}
	for _, c := range slices.Concat(r.files, r.archives) {
		if c == nil {
			continue
		}
		s := c.State()
		switch {
		// an archive has the time of its last line, or of its compression
		case (s.Packed || r.from.Beside == nil) && !s.ModTime.After(r.last.Time):
		case !s.Packed && slices.Contains(beside, s.fingerprint()):
		case slices.ContainsFunc(r.from.Read, func(m Mark) bool { return isOf(c, m) }):
		case slices.ContainsFunc(r.from.Reading, func(p Place) bool { return isOf(c, p.Mark) }):
		default:
			return true
		}
	}
	return false
}
