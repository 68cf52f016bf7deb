package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

const (
	// largest difference between the clock of a file system and the system's clock
	clockStep = 20 * time.Millisecond
	// largest number of entries of one name that wait for the reader of the output
	maxPlaces  = 16
	maxWaiting = 32 << 20               // bytes of all waiting entries
	drainTime  = 400 * time.Millisecond // longest wait for the reader of the output at the end
	drainPause = 100 * time.Millisecond // longest wait at the end without progress of the reader
)

// A saver writes checkpoints. It is safe for concurrent use.
type saver struct {
	path     string // empty: no checkpoint
	host     string
	boot     func() boot // last start of the machine
	sync     func() error
	taken    func() int64
	notify   func(Event)
	patterns []string

	loaded  map[string]savedSource // by path, until restored
	missing map[string]time.Time   // time since which a path in loaded does not exist
	known   []string               // patterns of the loaded checkpoint
	since   time.Time              // time of the loaded checkpoint, minus clockStep

	mu      sync.Mutex
	sources map[string]entry // valid entries, whose output the reader has taken, by path
	// paths of entries to write; true: with their siblings
	changed map[string]bool
	// entries that wait until the reader has taken their output, by path, oldest first
	waiting  map[string][]waiting
	held     int            // bytes of the entries in waiting
	contexts map[string]int // bytes of context in the newest entry, by path
	context  int            // sum of contexts
	failing  bool           // the file cannot be written, which was reported
	unsaved  time.Time      // time of the first entry in changed; zero: none
	written  int64          // number of checkpoints written
	failures int64          // failed attempts to write or sync a checkpoint

	writing sync.Mutex // held while the file is being written
	file    *os.File   // the state file, locked; nil without a checkpoint
	rewrite bool       // the file must be rewritten before the next record
	torn    bool       // the file has bytes after size, which must be cut off
	first   int64      // bytes of the first record
	size    int64      // bytes of all records
	synced  int64      // bytes that survive a power cut; -1: unknown
	made    bool       // there was no file when this run began
	unsure  bool       // a sync failed: unwritten data may be lost

	securing sync.Mutex // held while the file is being synced
}

// A waiting entry becomes valid once the reader of the output has taken all bytes up to pos.
type waiting struct {
	pos int64
	entry
	since time.Time // time of its snapshot
}

// newSaver returns a saver for path, which may hold a checkpoint. It fails if no checkpoint can be
// written there.
func newSaver(path string, patterns []string, o Options) (*saver, error) {
	id := bootID()
	w := &saver{
		path: path, host: hostID(), boot: func() boot { return boot{bootTime(), id} }, sync: o.Sync, taken: o.Taken, notify: o.Notify, patterns: patterns,
		sources: make(map[string]entry), changed: make(map[string]bool), waiting: make(map[string][]waiting), contexts: make(map[string]int),
		rewrite: true,
	}
	if w.notify == nil {
		w.notify = func(Event) {}
	}
	if path == "" {
		return w, nil
	}
	f, err := createBeside(path)
	if err != nil {
		return nil, fmt.Errorf("create a temporary file in the folder of the checkpoint %s: %w", path, wording.Cause(err))
	}
	f.Close()
	os.Remove(f.Name())
	if err := w.acquire(); err != nil {
		return nil, err
	}
	if err := w.read(); err != nil {
		w.release()
		return nil, err
	}
	removeTemporary(path) // the file is locked: no other process rewrites it
	return w, nil
}

// read loads the existing checkpoint, or reports why it cannot be used. It fails if the file may
// belong to another program or user, and must not be changed.
func (w *saver) read() error {
	info, err := w.file.Stat()
	if err == nil && info.Size() == 0 && w.made {
		return nil
	}
	j, err := readJournal(w.file, w.boot())
	unused := ""
	switch {
	case info != nil && info.Size() == 0:
		unused = "the file is empty: it was truncated, or a run ended before the first checkpoint"
	case IsForeign(err):
		return fmt.Errorf("%s is %w and is not changed: name another file, or remove this one", w.path, err)
	case err != nil:
		unused = wording.Cause(err).Error()
	case j.Host != "" && w.host != "" && j.Host != w.host:
		unused = "the file was written on another machine"
	default:
		w.load(j)
		return nil
	}
	w.again("is not used: %s", unused)
	return nil
}

// again reports a problem of the checkpoint that may cause lines to be printed again.
func (w *saver) again(format string, args ...any) {
	text := fmt.Sprintf("the checkpoint %s "+format+"; lines may be printed again", append([]any{w.path}, args...)...)
	w.notify(Event{Message: text, Again: true})
}

// parseEntry parses an entry of a journal. beside are its siblings, or nil.
func parseEntry(raw, beside json.RawMessage) (s savedSource, e entry, err error) {
	if err = json.Unmarshal(raw, &s); err == nil && beside != nil {
		err = json.Unmarshal(beside, &s.Beside)
	}
	if err == nil {
		e, err = newEntry(s)
	}
	return s, e, err
}

// load copies the entries of a journal, even if their files do not exist. A file is missing between
// the two steps of a rotation, but the rotated file must still be read to its end.
func (w *saver) load(j journal) {
	w.loaded, w.missing = make(map[string]savedSource), make(map[string]time.Time)
	w.known = nil
	for _, name := range j.Names {
		w.known = append(w.known, decodePath(name))
	}
	w.since = j.Time.Add(-clockStep)
	// the synced part is unknown until the next sync
	w.first, w.size, w.synced = j.first, j.size, -1
	w.torn = j.torn
	w.rewrite = !j.continues || !slices.Equal(w.known, w.patterns) || grown(j.size/2, j.first)
	switch {
	case j.damaged:
		w.again("is damaged from byte %d on: the entries before this byte are used", j.size)
	case j.torn:
		w.again("is cut off at byte %d: the entries before this byte are used", j.size)
	}
	var unread []string // paths of unreadable entries
	for path, raw := range j.files {
		s, e, err := parseEntry(raw, j.beside[path])
		if err != nil {
			unread = append(unread, path)
			continue
		}
		s.Path, s.RealPath = path, decodePath(s.RealPath)
		w.loaded[path] = s
		w.sources[path] = e
	}
	if len(unread) > 0 {
		w.again("has no readable entry for %s; the first is %s", wording.Count(int64(len(unread)), "file", "files"), slices.Min(unread))
	}
}

func (w *saver) isStateFile(path string) bool {
	return w.path != "" && filepath.Base(path) == filepath.Base(w.path) && resolved(path) == resolved(w.path)
}

func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// hostID returns a hash of this machine's ID, or "" if it has none.
func hostID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(id)) == 32 {
			return lineage.Hash(append([]byte("symfilter "), id...))
		}
	}
	return ""
}

func (w *saver) restore(s *source) {
	if saved, ok := w.loaded[s.path]; ok {
		delete(w.loaded, s.path)
		s.origin.saved = &saved
		for _, r := range saved.Reading {
			s.search.lineage.AddRead(r.Mark) // no other source may read the file
		}
	}
	s.dirty = true
}

// forget drops the entries that no source has restored, once their files have been missing for
// longer than vanish.
func (w *saver) forget(now time.Time) {
	for path := range w.loaded {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			delete(w.missing, path)
			continue
		}
		since, known := w.missing[path]
		if !known {
			w.missing[path] = now
		} else if now.Sub(since) > vanish {
			delete(w.loaded, path)
			delete(w.missing, path)
			w.drop(path)
		}
	}
}

// knows reports whether the checkpoint has this pattern. If so, a matching file that is not in the
// checkpoint is new.
func (w *saver) knows(pattern string) bool { return slices.Contains(w.known, pattern) }

// put records the state of s, which becomes valid once the reader of the output has taken all bytes
// up to pos. If all contexts together exceed maxContexts, put omits the contexts of s, and its
// lines are read again. If too many entries of s or too many bytes are waiting, put drops a waiting
// entry.
func (w *saver) put(s savedSource, pos int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.context+s.contexts()-w.contexts[s.Path] > maxContexts {
		s.Context = ""
		s.Reading = slices.Clone(s.Reading)
		for i := range s.Reading {
			s.Reading[i].Replay, s.Reading[i].Context = true, ""
		}
	}
	text := s
	text.Path, text.RealPath = encodePath(s.Path), encodePath(s.RealPath)
	e, err := newEntry(text)
	if err != nil {
		return // strings and numbers always marshal
	}
	w.context += s.contexts() - w.contexts[s.Path]
	w.contexts[s.Path] = s.contexts()
	list := w.waiting[s.Path]
	switch n := len(list); {
	case w.taken == nil:
		w.set(s.Path, e)
		return
	case n > 0 && list[n-1].equal(e), n == 0 && w.sources[s.Path].equal(e):
		return
	case n == maxPlaces:
		i := leastWanted(list)
		w.held -= list[i].size()
		list = slices.Delete(list, i, i+1)
	case n > 0 && w.held+e.size() > maxWaiting:
		w.held -= list[n-1].size()
		list = list[:n-1]
	}
	w.held += e.size()
	w.waiting[s.Path] = append(list, waiting{pos, e, time.Now()})
}

func (s *savedSource) contexts() int {
	n := len(s.Context)
	for _, r := range s.Reading {
		n += len(r.Context)
	}
	return n
}

// leastWanted returns the index of the entry to drop: without it, the gap between the positions of
// its neighbours is the smallest. list has at least three entries.
func leastWanted(list []waiting) int {
	least, gap := 1, int64(math.MaxInt64)
	for i := 1; i < len(list)-1; i++ {
		if d := list[i+1].pos - list[i-1].pos; d < gap {
			least, gap = i, d
		}
	}
	return least
}

// set makes e the valid entry of path. w.mu is held.
func (w *saver) set(path string, e entry) {
	if old := w.sources[path]; !old.equal(e) {
		w.sources[path] = e
		w.change(path, old.beside != e.beside)
	}
}

// change records that the entry of path must be written, with its siblings if whole is set. w.mu is
// held.
func (w *saver) change(path string, whole bool) {
	if len(w.changed) == 0 {
		w.unsaved = time.Now()
	}
	w.changed[path] = w.changed[path] || whole
}

// admit makes valid the entries whose output the reader has taken, and returns the number of bytes
// taken.
func (w *saver) admit() (taken int64) {
	if w.taken == nil {
		return 0
	}
	taken = w.taken()
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, list := range w.waiting {
		n := 0
		for n < len(list) && list[n].pos <= taken {
			w.held -= list[n].size()
			n++
		}
		if n > 0 {
			w.set(path, list[n-1].entry)
		}
		if n == len(list) {
			delete(w.waiting, path)
		} else if n > 0 {
			w.waiting[path] = slices.Clone(list[n:])
		}
	}
	return taken
}

// waitsForReader returns the number of output bytes that the reader has taken. The second result is
// true if at least one entry waits for the reader, and all other entries are written.
func (w *saver) waitsForReader() (taken int64, only bool) {
	if w.taken == nil {
		return 0, false
	}
	taken = w.taken()
	w.mu.Lock()
	defer w.mu.Unlock()
	return taken, len(w.waiting) > 0 && len(w.changed) == 0
}

// waits reports whether some entries are not valid yet, or not written.
func (w *saver) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0 || len(w.changed) > 0
}

func (w *saver) drop(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.waiting[path] {
		w.held -= e.size()
	}
	w.context -= w.contexts[path]
	delete(w.waiting, path)
	delete(w.contexts, path)
	delete(w.sources, path)
	w.change(path, true)
}

// drain waits until the reader of the output has taken all bytes. It gives up after drainTime, or
// after drainPause without progress: the next run prints the rest again.
func (w *saver) drain() {
	begin := time.Now()
	last, moved := w.admit(), begin
	for now := begin; now.Sub(begin) < drainTime && now.Sub(moved) < drainPause; now = time.Now() {
		w.mu.Lock()
		done := len(w.waiting) == 0
		w.mu.Unlock()
		if done {
			return
		}
		time.Sleep(time.Millisecond)
		if taken := w.admit(); taken > last {
			last, moved = taken, time.Now()
		}
	}
}

func (w *saver) end() error {
	err := w.save()
	if err == nil {
		err = w.secure()
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	w.release()
	return err
}

// save writes the changed entries, if any, as a record or in a new file.
func (w *saver) save() error {
	if w.path == "" {
		return nil
	}
	w.admit()
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	changed, unsaved := w.changed, w.unsaved
	w.changed, w.unsaved = make(map[string]bool), time.Time{}
	files := w.entries(changed)
	w.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	err := w.write(changed, files)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		for path, whole := range changed {
			w.change(path, whole)
		}
		w.unsaved = unsaved
	} else {
		w.written++
	}
	return w.report(err)
}

// report passes the first of consecutive errors of the state file to notify. w.mu is held.
func (w *saver) report(err error) error {
	if err != nil {
		w.failures++
		err = fmt.Errorf("write the checkpoint %s: %w", w.path, wording.Cause(err))
		if !w.failing && !errors.Is(err, errInUse) { // errInUse ends Run
			w.notify(Event{Message: err.Error() + "; retrying"})
		}
	}
	w.failing = err != nil
	return err
}

// entries returns the entries of paths, except dropped entries. An entry includes its siblings if
// its value in paths is true. w.mu is held.
func (w *saver) entries(paths map[string]bool) map[string]json.RawMessage {
	files := make(map[string]json.RawMessage, len(paths))
	for path, whole := range paths {
		if e, ok := w.sources[path]; ok {
			files[path] = e.json(whole)
		}
	}
	return files
}

func (w *saver) newRecord(files map[string]json.RawMessage) record {
	c := record{Host: w.host, Time: time.Now(), Names: encodePaths(w.patterns)}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		c.Files = append(c.Files, files[path])
	}
	return c
}
