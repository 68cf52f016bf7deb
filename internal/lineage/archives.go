package lineage

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
)

// An archive is a rotated file that was compressed: app.log.1.gz. Its inode differs from the plain
// file's, so its contents identify it. A checkpoint keeps hashes of the first bytes and of the
// bytes before the read offset. An archive is read only if its file was rotated and compressed
// before the file was read to its end.

// unseenArchives opens the archives of files that were not read to their end. It skips the archives
// of the plain files in opened. held are the open files. later is set if an archive must be
// examined again, for example since it may still be written.
func (l *Log) unseenArchives(ctx context.Context, open Opener, beside *Family, before Predecessor, opened, held []Content) (unseen []Step, later bool) {
	if !l.Unpacks {
		return nil, false
	}
	for _, f := range beside.Archives {
		if l.isLeftOut(f) {
			continue
		}
		if !l.Begun && (before.LeavesArchives || f.ModTime.Before(before.Since)) {
			l.LeaveOut(f)
			continue
		}
		if beside.hasUnpacked(f.Path) || isOpen(held, f.ID) {
			continue
		}
		c, err := open.Open(f)
		if errors.Is(err, ErrLater) {
			later = true
			continue
		}
		if err != nil {
			l.LeaveOut(f)
			continue
		}
		if before.wasCopied(c) {
			c.Close()
			continue
		}
		from, archived, err := l.isArchived(ctx, open, c, f, held)
		twin := !archived && hasTwin(c, opened)
		switch {
		case err != nil, !archived && !twin && ctx.Err() != nil: // the comparison was cut short
			later = true
		// not left out: the next search may need the twin, if its plain file is removed before
		case twin:
		case archived:
			l.LeaveOut(f)
		case from == 0 && f.ModTime.Before(l.LastChange.Truncate(time.Second)) && !l.mayBeOfEmpty(beside, f):
			l.LeaveOut(f)
			l.outdated = append(l.outdated, f)
		case !open.Keep(c, f): // still being written, perhaps from a known file
			later = true
		default:
			step, err := stepAt(c, from)
			if err == nil {
				unseen = append(unseen, step)
				continue
			}
			later = true // Keep closed the archive, which cannot be opened again now
		}
		c.Close()
	}
	return unseen, later
}

// mayBeOfEmpty reports whether f may be the archive of a file that was empty when the reader closed
// it, and got lines later. It returns true if f is a new archive, and a file from which nothing was
// read no longer exists.
func (l *Log) mayBeOfEmpty(beside *Family, f File) bool {
	isGone := func(m Mark) bool { return m.Off == 0 && !beside.has(m.ID()) }
	isOld := func(a File) bool { return a.ID == f.ID }
	return l.family != nil && !slices.ContainsFunc(l.family.Archives, isOld) && slices.ContainsFunc(l.read, isGone)
}

func isOpen(held []Content, id ID) bool {
	return slices.ContainsFunc(held, func(c Content) bool { return c.State().ID == id })
}

// A looked is an open file with the result of [Opener.Look].
type looked struct {
	Content
	state State
}

func (l looked) State() State { return l.state }

// isArchived reports whether c, opened as f, is the archive of a file that is held, was read, or
// must not be read. If lines were added to a file after it was read, the result is false, and from
// is the offset of these lines. A false result is invalid if ctx is done. The only error is
// ErrLater.
func (l *Log) isArchived(ctx context.Context, open Opener, c Content, f File, held []Content) (from int64, archived bool, err error) {
	s := c.State()
	var all []looked
	for _, o := range held {
		if o.State().Packed {
			continue
		}
		// the file may have been empty when it was opened, or truncated later
		if now, err := open.Look(o); err == nil && len(now.Head) > 0 {
			all = append(all, looked{o, now})
		}
	}
	for _, o := range all {
		if o.state.ModTime.Equal(s.ModTime) && bytes.HasPrefix(s.Head, o.state.Head) {
			l.archiveOf[o.state.ID] = f
			return 0, true, nil
		}
	}
	closed := l.closedMarks()
	for _, m := range closed {
		if m.Len > 0 && m.Time.Equal(s.ModTime) && m.sameBeginning(s) {
			return 0, true, nil
		}
	}
	// not every compression program gives the archive the time of its file
	for _, o := range all {
		if !bytes.HasPrefix(s.Head, o.state.Head) && !bytes.HasPrefix(o.state.Head, s.Head) {
			continue
		}
		size := o.state.Size
		if _, same := sameUpTo(c, o, size); same || continues(c, o) || isPartOf(c, o, size) {
			l.archiveOf[o.state.ID] = f
			return 0, true, nil
		}
	}
	for _, m := range closed {
		if m.Len == 0 || !m.holds(c) {
			continue
		}
		more, err := hasMore(c, m.Off)
		if err != nil {
			return 0, false, err
		}
		if !more {
			return 0, ctx.Err() == nil, nil
		}
		if m.Len == HeadSize { // the head of a short file may match by chance
			// a truncated file and its copy each have a mark; the larger offset is right
			from = max(from, m.Off)
		}
	}
	return from, false, nil
}
