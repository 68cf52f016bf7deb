package lineage

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"
)

// Records list the files that the logs read, have read or must not read. An existing file has a
// record; a file that no longer exists has a mark. Archives that a log does not read are in
// Log.leftOut. [Log.Entry] returns the part for the next run. A Records is safe for concurrent use.
type Records struct {
	mu   sync.Mutex
	byID map[ID]*record // records of existing files
	// marks of files that a log has read or left out and that no longer exist: they identify the
	// archives of these files; see lastMarks
	goneMarks map[*Log][]Mark
}

// NewRecords returns Records without any record or mark.
func NewRecords() *Records {
	return &Records{byID: make(map[ID]*record), goneMarks: make(map[*Log][]Mark)}
}

type record struct {
	owner  *Log
	active bool // the file is being read
	// the file is or was read; if false, it is older than the log or a copy, and must not be read
	read bool
	mark Mark
}

// matches reports whether c is the file of the record. The inode alone does not identify a closed
// file, which may be removed and its inode reused.
func (r *record) matches(c Content) bool {
	switch {
	case r.active:
		return true
	case r.read:
		return r.mark.isOf(c)
	}
	return r.mark.sameBeginning(c.State()) && (r.mark.Len > 0 || c.State().Size == 0)
}

// Claim records that l reads c. If another log reads c, or has read it, Claim returns that log and
// records nothing.
func (l *Log) Claim(c Content) (other *Log) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	id := c.State().ID
	if r := f.byID[id]; r != nil {
		switch same := r.matches(c); {
		case same && r.read && r.owner != l:
			return r.owner
		case !same:
			r.owner.keepMarks(r.mark)
		}
	}
	f.byID[id] = &record{owner: l, active: true, read: true}
	return nil
}

// Finish records that the file of m was read up to m's offset, and is closed. gone is set if the
// file no longer has a name.
func (l *Log) Finish(m Mark, gone bool) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	id := m.ID()
	delete(l.archiveOf, id)
	r := f.byID[id]
	if r == nil {
		return
	}
	if gone { // its inode is free for another file
		r.owner.keepMarks(m)
		delete(f.byID, id)
		return
	}
	r.active, r.mark = false, m
	l.read = append(l.read, m)
}

// Forget removes the record of a file, which is then read from its beginning.
func (l *Log) Forget(id ID) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, id)
	delete(l.archiveOf, id)
}

// unclaim closes claimed files, and removes their records. The files can then be opened and claimed
// again.
func (l *Log) unclaim(all []Step) {
	for _, s := range all {
		l.Forget(s.State().ID)
		s.Close()
	}
}

// AddRead records that the file of m was read up to m's offset, unless the file already has a
// record.
func (l *Log) AddRead(m Mark) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := m.ID(); f.byID[id] == nil {
		f.byID[id] = &record{owner: l, read: true, mark: m}
	}
}

// forgetSaved removes the record of m, a mark in a checkpoint. l can then claim the file or its
// archive. The record must equal m, since another file may have the inode now.
func (l *Log) forgetSaved(m Mark) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[m.ID()]; r != nil && r.owner == l && !r.active && r.mark == m {
		delete(f.byID, m.ID())
	}
}

// leave records that l does not read c: c is older than the log, or a copy of lines that were read.
func (l *Log) leave(c Content) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	s := c.State()
	r := f.byID[s.ID]
	if r != nil && r.active { // another log reads it
		return
	}
	m := Mark{Dev: s.ID.Dev, Ino: s.ID.Ino, Head: Hash(s.Head), Len: len(s.Head), Off: s.Size, Time: s.ModTime}
	if l.Unpacks && !s.Opaque { // its archive may have to be recognized
		before := make([]byte, min(m.Off, RecentSize))
		if _, err := c.ReadAt(before, m.Off-int64(len(before))); err == nil || err == io.EOF {
			m.RecentHash = Hash(before)
		}
	}
	if r != nil && !r.matches(c) { // the inode was used again
		r.owner.keepMarks(r.mark)
	}
	f.byID[s.ID] = &record{owner: l, mark: m}
}

// AddGone keeps the marks of files that no longer exist, if l reads archives.
func (l *Log) AddGone(marks ...Mark) {
	l.records.mu.Lock()
	defer l.records.mu.Unlock()
	l.keepMarks(marks...)
}

// keepMarks does the same as AddGone. The caller has locked the records.
func (l *Log) keepMarks(marks ...Mark) {
	if !l.Unpacks || len(marks) == 0 { // only archives are recognized by marks
		return
	}
	all := l.records.goneMarks[l]
	for _, m := range marks {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	l.records.goneMarks[l] = lastMarks(all, MaxMarks, all[len(all)-1].Time)
}

// lastMarks returns the last n marks. It also returns earlier marks of a burst, up to MaxBurst
// marks in total. The files of a burst were last written less than burstTime before the last
// argument.
func lastMarks(all []Mark, n int, until time.Time) []Mark {
	first, since := max(0, len(all)-n), until.Add(-burstTime)
	for first > 0 && len(all)-first < MaxBurst && all[first-1].Time.After(since) {
		first--
	}
	return all[first:]
}

// lastGone returns the marks of the last n files that no longer exist, the oldest first. It adds
// the marks of a burst that ended when the log was last written to.
func (l *Log) lastGone(n int) []Mark {
	l.records.mu.Lock()
	defer l.records.mu.Unlock()
	return slices.Clone(lastMarks(l.records.goneMarks[l], n, l.LastChange))
}

// closedMarks returns the marks of all files that were read or left out, including files that no
// longer exist.
func (l *Log) closedMarks() (marks []Mark) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.byID {
		if r.owner == l && !r.active {
			marks = append(marks, r.mark)
		}
	}
	return append(marks, f.goneMarks[l]...)
}

// Drop removes the records and marks of all files of l.
func (l *Log) Drop() {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.goneMarks, l)
	maps.DeleteFunc(f.byID, func(_ ID, r *record) bool { return r.owner == l })
}

func (f *Records) recordOf(c Content) (record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[c.State().ID]; r != nil && r.matches(c) {
		return *r, true
	}
	return record{}, false
}

// same reports whether c is being read, or is unchanged since its record was made. c then need not
// be opened.
func (f *Records) same(c File) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[c.ID]
	return r != nil && (r.active || r.mark.Time.Equal(c.ModTime) && r.mark.Off == c.Size)
}

// closedRecord returns the record of a closed file if l has read bytes of it.
func (l *Log) closedRecord(id ID) (record, bool) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil && r.owner == l && r.read && !r.active && r.mark.Off > 0 {
		return *r, true
	}
	return record{}, false
}

// ignore records that c is older than l, so that it is not read. It returns false if it could not
// open c for that: too many files are open, or c is no longer at its path.
func (l *Log) ignore(open Opener, c File) bool {
	if l.records.same(c) {
		return true
	}
	opened, err := open.Open(c)
	if err != nil {
		return !errors.Is(err, ErrLater) && !errors.Is(err, fs.ErrNotExist)
	}
	defer opened.Close()
	if opened.State().ID != c.ID {
		return false
	}
	l.leave(opened)
	return true
}

// prune replaces the records of read files that no longer exist by marks. A file no longer exists
// if it is neither in the given family nor the current file. prune does nothing if the family is
// partial: a file that reappears would be read again.
func (l *Log) prune(there *Family, now Content) {
	if there.Partial {
		return
	}
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	var gone []Mark
	l.read = slices.DeleteFunc(l.read, func(m Mark) bool {
		if now != nil && now.State().ID == m.ID() || there.has(m.ID()) {
			return false
		}
		gone = append(gone, m)
		return true
	})
	l.keepMarks(gone...)
	for _, m := range gone {
		if r := f.byID[m.ID()]; r != nil && r.owner == l && !r.active {
			delete(f.byID, m.ID())
		}
	}
}

// hasRead reports whether c was read to its end. The times must agree, since the record of the
// inode may describe an earlier file.
func (f *Records) hasRead(c File) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[c.ID]
	return r != nil && !r.active && r.read && r.mark.Time.Equal(c.ModTime)
}

// timeOf returns the last change of a file in its record. known is false if the file has no record
// or is being read. If the inode was reused, the record may describe the earlier file.
func (f *Records) timeOf(id ID) (at time.Time, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil && !r.active {
		return r.mark.Time, true
	}
	return time.Time{}, false
}

// touched updates the time of the last change in the record of c. It does nothing if the file is
// being read, or if its size differs from the size in the record.
func (f *Records) touched(c Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := c.State()
	if r := f.byID[s.ID]; r != nil && !r.active && r.mark.Off == s.Size {
		r.mark.Time = s.ModTime
	}
}

// Size returns the numbers of the log's records, marks and left-out archives.
func (l *Log) Size() (records, marks, archives int) {
	f := l.records
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.byID {
		if r.owner == l {
			records++
		}
	}
	return records, len(f.goneMarks[l]), len(l.leftOut)
}
