package lineage

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A Truncated is a followed file that was truncated while it was open, with the time of the last
// read to its end.
type Truncated struct {
	Content
	Read time.Time // last read to its end
}

// Copies claims and returns copies of a truncated file's old contents, the oldest first. There are
// several if the file was truncated several times since the last read. continued reports whether a
// copy has all bytes that were read. If that copy also has unread bytes, it is the first in copies,
// and reading continues in it. now is the file at the log's path, or nil if it cannot be opened.
// held are the open files, and rotated the open files that are older than the truncated file. The
// only error is ErrLater.
func (l *Log) Copies(ctx context.Context, open Opener, beside *Family, of Truncated, now Content, held, rotated []Content) (copies []Step, continued bool, err error) {
	old := of.State()
	// if another file has the log's name, the truncated file was replaced: rotated files may be
	// younger, not copies
	replaced := now == nil || now.State().ID != old.ID
	rest := -1
	for _, f := range beside.Files {
		if f.ID == old.ID || l.records.same(f) {
			continue
		}
		c, err := open.Open(f)
		if err != nil {
			continue
		}
		s := c.State()
		_, known := l.records.recordOf(c)
		switch {
		case known || s.Size == 0:
		case s.ModTime.Before(of.Read.Add(-time.Minute)): // made before the file was last read
		case old.Look > 0 && rest < 0 && continues(c, of.Content):
			step, err := stepAt(c, old.Off)
			if err != nil {
				c.Close()
				l.unclaim(copies)
				return nil, false, ErrLater
			}
			if s.Size > old.Off && l.Claim(c) == nil {
				rest = len(copies)
				copies = append(copies, step)
				continue
			}
			l.leave(c)
			continued = true
		case replaced:
		case isOfNow(c, now):
		case !isCopyOfAny(c, rotated) && l.Claim(c) == nil:
			copies = append(copies, Step{Content: c})
			continue
		}
		c.Close()
	}
	if l.Unpacks {
		again := false
		if copies, rest, again, err = l.unpackedCopies(ctx, open, beside, of.Content, now, held, copies, rest); err != nil {
			l.unclaim(copies)
			return nil, false, err
		}
		continued = continued || again
	}
	// prune and forgetLeftOut come last: the comparison with archives needs the marks that prune
	// drops
	l.prune(beside, now)
	l.forgetLeftOut(beside)
	l.family = beside // so the next checkpoint lists the copies as known
	return l.inOrder(copies, rest, beside), continued || rest >= 0, nil
}

// inOrder sorts copies by age. The copy with the index rest comes first, unless rest is -1.
func (l *Log) inOrder(copies []Step, rest int, beside *Family) []Step {
	var sorted []Step
	if rest >= 0 {
		sorted = append(sorted, copies[rest])
		copies = slices.Delete(copies, rest, rest+1)
	}
	all := contentsOf(copies)
	l.SortByAge(all, nil, beside, "")
	for _, c := range all {
		i := slices.IndexFunc(copies, func(s Step) bool { return s.Content == c })
		sorted = append(sorted, copies[i])
	}
	return sorted
}

func contentsOf(steps []Step) (all []Content) {
	for _, s := range steps {
		all = append(all, s.Content)
	}
	return all
}

// Discard closes copies and removes their records. The search can then be repeated.
func (l *Log) Discard(copies []Step) { l.unclaim(copies) }

// isOfNow reports whether c has the same bytes as now, the file with the log's name, or as the
// beginning of now. c may be an unfinished copy that a program makes before it truncates now.
func isOfNow(c, now Content) bool {
	size := c.State().Size
	if size > now.State().Size {
		return false
	}
	_, same := sameUpTo(c, now, size)
	return same
}

// unpackedCopies appends the archives of copies of old, a truncated file, to copies, and returns
// the result as all. One copy may have all bytes that were read from old: rest is its index in
// copies, and last its index in all, or -1 if there is none. continued reports whether an archive
// has all these bytes. The only error is ErrLater.
func (l *Log) unpackedCopies(ctx context.Context, open Opener, beside *Family, old, now Content, held []Content, copies []Step, rest int) (all []Step, last int, continued bool, err error) {
	s := old.State()
	replaced := now == nil || now.State().ID != s.ID
	others := slices.DeleteFunc(slices.Clone(held), func(c Content) bool { return c == old })
	for _, f := range beside.Archives {
		if l.isLeftOut(f) || beside.hasUnpacked(f.Path) || isOpen(held, f.ID) {
			continue
		}
		c, err := open.Open(f)
		if errors.Is(err, ErrLater) {
			return copies, rest, continued, err
		}
		if err != nil {
			continue
		}
		if s.Look > 0 && rest < 0 && continues(c, old) {
			continued = true
			step, more, err := l.takeRest(ctx, c, s.Off)
			if err != nil {
				c.Close()
				return copies, rest, continued, err
			}
			if more {
				rest = len(copies)
				copies = append(copies, step)
				continue
			}
			l.LeaveOut(f)
			c.Close()
			continue
		}
		from, archived := int64(0), false
		if !replaced {
			if from, archived, err = l.isArchived(ctx, open, c, f, others); err != nil {
				c.Close()
				return copies, rest, continued, err
			}
		}
		twin := !archived && hasTwin(c, append(contentsOf(copies), now))
		step, err := stepAt(c, from)
		switch {
		// the archive could not be read or compared
		case err != nil, !archived && !twin && ctx.Err() != nil:
			c.Close()
			return copies, rest, continued, ErrLater
		case replaced, twin:
		case archived:
			l.LeaveOut(f)
		case l.Claim(c) == nil:
			copies = append(copies, step)
			continue
		}
		c.Close()
	}
	return copies, rest, continued, nil
}

// takeRest claims the archive c of a file that was read up to off, and returns the step that
// continues in c. more is false if c ends at off, or if another log reads the archive. The only
// error is ErrLater.
func (l *Log) takeRest(ctx context.Context, c Content, off int64) (step Step, more bool, err error) {
	if step, err = stepAt(c, off); err != nil {
		return step, false, ErrLater
	}
	if more, err = hasMore(c, off); err != nil || !more && ctx.Err() != nil {
		return step, false, ErrLater
	}
	return step, more && l.Claim(c) == nil, nil
}
