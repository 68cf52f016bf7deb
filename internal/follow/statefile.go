package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/wording"
)

const (
	lockPatience = 2 * time.Second       // longest wait for another process that is ending
	lockPause    = 20 * time.Millisecond // between two tries
	temporaryEnd = ".tmp"                // suffix of temporary files
	stateNames   = 100                   // names tried for a temporary file
)

var errInUse = errors.New("in use: another process writes its checkpoint to this file")

// acquire opens the state file, and locks it against other processes. It creates a missing file:
// without one to lock, two followers that start together would not notice each other.
func (w *saver) acquire() error {
	for begin := time.Now(); ; time.Sleep(lockPause) {
		f, info, err := openState(w.path)
		if errors.Is(err, fs.ErrNotExist) {
			if f, err = os.OpenFile(w.path, os.O_CREATE|os.O_EXCL|stateFlags, stateMode); err == nil {
				w.made = true
				info, err = f.Stat()
			}
		}
		switch {
		case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist): // another process is creating or replacing it
		case IsForeign(err):
			return fmt.Errorf("%s is %w", w.path, err)
		case err != nil:
			return fmt.Errorf("read the checkpoint %s: %w", w.path, wording.Cause(err))
		}
		w.file = f
		if f != nil && lockFile(f) && w.isAtPath(info) {
			return nil
		}
		w.release() // locked, or replaced before the lock was taken
		if time.Since(begin) > lockPatience {
			return fmt.Errorf("%s is %w", w.path, errInUse)
		}
	}
}

// isAtPath reports whether the path still leads to the open file.
func (w *saver) isAtPath(opened fs.FileInfo) bool {
	info, err := os.Lstat(w.path)
	return err == nil && os.SameFile(info, opened)
}

// release closes the state file, which ends its lock.
func (w *saver) release() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

// write writes the changed entries to the file, or rewrites the file with all entries. w.writing is
// held.
func (w *saver) write(changed map[string]bool, files map[string]json.RawMessage) error {
	if !w.rewrite {
		info, err := w.file.Stat()
		// another program has removed, replaced or changed the file
		w.rewrite = err != nil || info.Size() < w.size || info.Size() > w.size && !w.torn || !w.isAtPath(info)
	}
	if !w.rewrite {
		c := w.newRecord(files)
		c.setBoot(w.boot())
		for path := range changed {
			if files[path] == nil {
				c.Gone = append(c.Gone, encodePath(path))
			}
		}
		err := w.append(c)
		if !w.rewrite {
			return err
		}
	}
	w.mu.Lock()
	all := maps.Clone(w.sources)
	w.mu.Unlock()
	if err := w.syncOutput(); err != nil {
		return err
	}
	return w.renew(all)
}

func (w *saver) syncOutput() error {
	if w.sync == nil {
		return nil
	}
	return w.sync()
}

// append appends a record to the file. It sets w.rewrite if the file must be replaced instead.
// w.writing is held.
func (w *saver) append(c record) error {
	b, err := appendRecord(nil, c)
	if err != nil {
		return err
	}
	if w.size+int64(len(b)) > maxState {
		w.rewrite = true
		return nil
	}
	if w.torn {
		if err := w.file.Truncate(w.size); err != nil {
			w.rewrite = true
			return err
		}
		w.torn = false
	}
	if _, err := w.file.Write(b); err != nil {
		w.torn = true
		return err
	}
	w.size += int64(len(b))
	return nil
}

// unsynced reports whether the file has records that a power cut would lose. It returns false while
// the file is being written.
func (w *saver) unsynced() bool {
	if w.path == "" || !w.writing.TryLock() {
		return false
	}
	defer w.writing.Unlock()
	return !w.rewrite && w.size != w.synced
}

// secure makes the records in the file survive a power cut. It syncs the output, and then the file.
// A file that has grown too large, or whose sync has failed, is rewritten instead. Checkpoints may
// be written at the same time.
func (w *saver) secure() error {
	if w.path == "" {
		return nil
	}
	w.securing.Lock()
	defer w.securing.Unlock()
	w.writing.Lock()
	file, end, grown := w.file, w.size, w.unsure || grown(w.size, w.first)
	if w.rewrite || end == w.synced {
		w.writing.Unlock()
		return nil
	}
	var all map[string]entry
	if grown {
		w.mu.Lock()
		all = maps.Clone(w.sources)
		w.mu.Unlock()
	}
	w.writing.Unlock()
	err := w.syncOutput()
	if err == nil {
		if grown {
			err = w.renewed(file, all)
		} else {
			err = w.markSynced(file, end)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.report(err)
}

// grown reports whether a journal should be rewritten. size is the size of the journal, and first
// the size of its first record, in bytes.
func grown(size, first int64) bool { return size > max(compactSize, compactTimes*first) }

// renewed rewrites the file, unless it was replaced since file was opened.
func (w *saver) renewed(file *os.File, all map[string]entry) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.file != file || w.rewrite {
		return nil
	}
	return w.renew(all)
}

// markSynced appends a mark that the bytes up to end survive a power cut, and syncs the file.
func (w *saver) markSynced(file *os.File, end int64) error {
	w.writing.Lock()
	if w.file != file || w.rewrite {
		w.writing.Unlock()
		return nil
	}
	all := w.size == end
	mark := record{Synced: end, Time: time.Now()}
	mark.setBoot(w.boot())
	err := w.append(mark)
	marked := w.size
	w.writing.Unlock()
	if err != nil {
		return err
	}
	err = file.Sync()
	w.writing.Lock()
	defer w.writing.Unlock()
	switch {
	case w.file != file:
		return nil // the new file was synced
	case err != nil:
		w.unsure = true
	case all:
		w.synced = marked
	}
	return err
}

// renew replaces the file with a new one. The first record has the entries in all, whose output was
// synced. A second record has the entries that have changed since. A reader finds the old file or
// the new file. w.writing is held.
func (w *saver) renew(all map[string]entry) (err error) {
	whole := make(map[string]json.RawMessage, len(all))
	for path, e := range all {
		whole[path] = e.json(true)
	}
	b, err := appendRecord(nil, w.newRecord(whole))
	if err != nil {
		return err
	}
	first := len(b)
	w.mu.Lock()
	since := w.entries(w.sourcesSince(all))
	w.mu.Unlock()
	if len(since) > 0 {
		c := w.newRecord(since)
		c.setBoot(w.boot())
		if b, err = appendRecord(b, c); err != nil {
			return err
		}
	}
	if len(b) > maxState {
		return fmt.Errorf("%w: %d bytes", errTooLarge, len(b))
	}
	other, err := w.lockOther()
	if err != nil {
		return err
	}
	if other != nil {
		defer other.Close()
	}
	f, err := createBeside(w.path)
	if err != nil {
		return err
	}
	name := f.Name()
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(name)
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if locks {
		lockFile(f)
	} else { // on this system, open files cannot be renamed or replaced
		f.Close()
		w.release()
	}
	if err = os.Rename(name, w.path); err != nil {
		return err
	}
	w.release()
	if !locks {
		if f, _, err = openState(w.path); err != nil {
			return err
		}
	}
	w.file, w.rewrite, w.torn, w.unsure = f, false, false, false
	w.first, w.size, w.synced = int64(first), int64(len(b)), int64(first)
	return nil
}

// lockOther locks the file at the path if w has opened another file. So no other process uses that
// file before it is replaced. lockOther returns nil if there is nothing to lock.
func (w *saver) lockOther() (*os.File, error) {
	if !locks || w.file == nil {
		return nil, nil
	}
	mine, err := w.file.Stat()
	if err != nil || w.isAtPath(mine) {
		return nil, nil
	}
	f, _, err := openState(w.path)
	if err != nil {
		return nil, nil // no state file
	}
	if !lockFile(f) {
		f.Close()
		return nil, errInUse
	}
	return f, nil
}

// sourcesSince returns the paths whose entries differ from the entries in all. The value of a path
// is true if its siblings differ, too. w.mu is held.
func (w *saver) sourcesSince(all map[string]entry) map[string]bool {
	since := make(map[string]bool)
	for path, e := range w.sources {
		if old := all[path]; !old.equal(e) {
			since[path] = old.beside != e.beside
		}
	}
	return since
}

func createBeside(path string) (f *os.File, err error) {
	dir, name := filepath.Split(path)
	for i := range stateNames {
		temporary := "." + name + "." + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(i) + temporaryEnd
		f, err = os.OpenFile(dir+temporary, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, stateMode)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// removeTemporary removes the temporary files of killed runs beside path.
func removeTemporary(path string) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+name+".")
		number, ok2 := strings.CutSuffix(rest, temporaryEnd)
		if ok && ok2 && strings.Trim(number, "0123456789-") == "" && e.Type().IsRegular() {
			os.Remove(dir + e.Name())
		}
	}
}
