package lineage

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A Log is the lineage of the files that had one name. It is not safe for concurrent use. Several
// logs may share one Records.
type Log struct {
	Name       string    // for messages
	Unpacks    bool      // archives are read
	Begun      bool      // a file was read in this run, or in the run of the checkpoint
	LastChange time.Time // last change of the current file while the name certainly led to it

	records *Records
	family  *Family // the last listing
	read    []Mark  // files read to their end that still exist
	// archives that must not be read, with the time of their last change
	leftOut   map[ID]time.Time
	outdated  []File      // archives in leftOut that Outdated has not returned yet
	archiveOf map[ID]File // archives of files that are still open

	ignored time.Time // rotated files last written before this time are ignored
	// fingerprints in the last checkpoint, for the next checkpoint if the files were not listed
	savedBeside   *string
	listsArchives bool // savedBeside includes archives
}

// NewLog returns the lineage of the files called name, without records of them.
func NewLog(name string, records *Records) *Log {
	return &Log{Name: name, records: records, leftOut: make(map[ID]time.Time), archiveOf: make(map[ID]File)}
}

// Known reports whether a log reads c or has read it. If c was closed, reading continues at the
// offset from.
func (l *Log) Known(c Content) (from int64, known bool) {
	r, known := l.records.recordOf(c)
	return r.mark.Off, known && r.read
}

// A Predecessor is the file whose successors [Log.Successors] finds.
type Predecessor struct {
	Content // nil if the file is gone
	// files last written before this time are not successors; if zero, every file without a record
	// is a successor
	Since time.Time
	// until Log.Begun is set, archives are not read, even if written after Since
	LeavesArchives bool
}

// wasCopied reports whether the predecessor was truncated, and c has the bytes that were read.
// [Log.Copies] finds such a file.
func (p Predecessor) wasCopied(c Content) bool {
	return p.Content != nil && isTruncated(p.Content) && continues(c, p.Content)
}

// Successors opens the unread rotated files that are younger than the file in before. It leaves out
// now, the file with the log's name. It claims no file. held are the open files, rotated the open
// files that are read only for late lines. later reports whether the search must be repeated, since
// some archives may still be written.
func (l *Log) Successors(ctx context.Context, open Opener, beside *Family, before Predecessor, now Content, held, rotated []Content) (unseen []Step, later bool) {
	files := l.unseen(open, beside, before, now, rotated)
	for _, c := range files {
		unseen = append(unseen, Step{Content: c})
	}
	archives, later := l.unseenArchives(ctx, open, beside, before, files, held)
	return append(unseen, archives...), later
}

// Take records beside as the current listing. It claims and returns the files in unseen that no
// other log reads. late are the files that have grown since they were read and closed. beside must
// be settled: during a rename, a file may be missing from a listing.
func (l *Log) Take(open Opener, beside *Family, now Content, unseen []Step) (claimed, late []Step) {
	l.family = beside
	for id, archive := range l.archiveOf {
		for _, c := range beside.Archives {
			if c.ID == archive.ID {
				l.archiveOf[id] = c
			}
		}
	}
	l.prune(beside, now)
	l.forgetLeftOut(beside)
	late = l.grown(open, beside.Files)
	for _, s := range unseen {
		if l.Claim(s.Content) != nil {
			s.Close()
			continue
		}
		claimed = append(claimed, s)
	}
	return claimed, late
}

// unseen returns the successors among the plain files. Since clocks may be set back, records decide
// which files are younger, and times are used in two cases only. A file last written before
// before.Since is skipped. A file older than LastChange is skipped if this listing or the last one
// has its archive: someone has probably unpacked the archive.
func (l *Log) unseen(open Opener, beside *Family, before Predecessor, now Content, rotated []Content) (unseen []Content) {
	for _, c := range beside.Files {
		if now != nil && c.ID == now.State().ID || l.records.same(c) || c.ModTime.Before(before.Since) {
			continue
		}
		if l.Begun && c.ModTime.Before(l.LastChange) && (beside.hasArchive[c.Path] || l.family != nil && l.family.hasArchive[c.Path]) {
			if _, read := l.closedRecord(c.ID); !read && l.leavesArchiveOf(beside, c.Path) {
				l.ignore(open, c) // the next search may not see the archive
			}
			continue
		}
		opened, err := open.Open(c)
		if err != nil {
			continue
		}
		r, known := l.records.recordOf(opened)
		switch {
		case known && r.read:
			l.records.touched(opened)
		case known: // it may have grown
			r.owner.leave(opened)
		}
		if known || opened.State().ID != c.ID || before.wasCopied(opened) || before.Content != nil && areCopies(opened, before.Content) || isCopyOfAny(opened, rotated) {
			opened.Close()
			continue
		}
		open.Keep(opened, c)
		unseen = append(unseen, opened)
	}
	return unseen
}

// leavesArchiveOf reports whether the archive of the file at path must not be read.
func (l *Log) leavesArchiveOf(beside *Family, path string) bool {
	isKnown := func(a File) bool { return packedBase(a.Path) == path && l.isLeftOut(a) }
	return !l.Unpacks || slices.ContainsFunc(beside.Archives, isKnown) || l.family != nil && slices.ContainsFunc(l.family.Archives, isKnown)
}

// grown opens and claims files that have grown since they were read and closed.
func (l *Log) grown(open Opener, all []File) (late []Step) {
	for _, c := range all {
		r, known := l.closedRecord(c.ID)
		if !known || c.Size <= r.mark.Off || c.ModTime.Equal(r.mark.Time) {
			continue
		}
		opened, err := open.Open(c)
		if err != nil {
			continue
		}
		step, held := r.mark.stepIn(opened)
		if opened.State().ID != c.ID || !held || l.Claim(opened) != nil {
			opened.Close()
			continue
		}
		l.read = slices.DeleteFunc(l.read, func(m Mark) bool { return m.ID() == c.ID })
		late = append(late, step)
	}
	return late
}

// IgnoreOlder records files in beside that are not read: files last written before since, or all if
// since is zero. It returns false if a file cannot be opened now.
func (l *Log) IgnoreOlder(open Opener, beside *Family, since time.Time) bool {
	if beside != l.family || l.ignored.IsZero() || !l.ignored.Equal(since) {
		for _, c := range beside.Files {
			if (since.IsZero() || c.ModTime.Before(since)) && !l.ignore(open, c) {
				return false
			}
		}
		l.family, l.ignored = beside, since
	}
	return true
}

// SortByAge sorts files from the oldest to the youngest. The files in reading are older than files.
// The name of a file in reading is used only if the file is in beside: the last name of a removed
// file may belong to another file. target is the previous target of a symbolic link, or "". The
// numbers in successive targets rise.
func (l *Log) SortByAge(files, reading []Content, beside *Family, target string) {
	var older []string
	for _, c := range reading {
		if s := c.State(); beside.has(s.ID) || beside.has(l.archiveOf[s.ID].ID) {
			older = append(older, l.rotatedName(s))
		}
	}
	if target != "" {
		older = append(older, target)
	}
	all := make([]candidate, len(files))
	for i, c := range files {
		s := c.State()
		all[i] = candidate{s.File, c}
		all[i].Path = l.rotatedName(s)
	}
	sortByAge(all, older, beside.named())
	for i, c := range all {
		files[i] = c.content
	}
}

// rotatedName returns the name that rotation gave the file, without the suffix of its compression.
func (l *Log) rotatedName(s State) string {
	if s.Packed {
		return packedBase(s.Path)
	}
	if archive, ok := l.archiveOf[s.ID]; ok {
		return packedBase(archive.Path)
	}
	return s.Path
}

// Outdated returns the archives left out since its last call because they are older than the log
// and belong to no known file.
func (l *Log) Outdated() []File {
	all := l.outdated
	l.outdated = nil
	return all
}

// LeaveOut records that the archive c must not be read.
func (l *Log) LeaveOut(c File) { l.leftOut[c.ID] = c.ModTime }

// isLeftOut reports whether c is an archive that must not be read.
func (l *Log) isLeftOut(c File) bool {
	at, found := l.leftOut[c.ID]
	return found && at.Equal(c.ModTime)
}

// forgetLeftOut removes records of left-out archives that are not in beside, unless beside is
// partial. beside must be settled: during a rename, an archive may be missing from a listing.
func (l *Log) forgetLeftOut(beside *Family) {
	if !beside.Partial {
		maps.DeleteFunc(l.leftOut, func(id ID, at time.Time) bool {
			return !slices.ContainsFunc(beside.Archives, func(c File) bool { return c.ID == id && c.ModTime.Equal(at) })
		})
	}
}
