package buildid

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A walk updates the folders of roots, in several goroutines. It lists a folder or opens a file
// only if the folder or file is new or may have changed.
type walk struct {
	ctx     context.Context
	shallow bool          // do not examine files in unchanged folders
	opens   *atomic.Int64 // counter of the files opened

	mu     sync.Mutex
	more   sync.Cond // signals a new task, or the end of all tasks
	tasks  []func()  // tasks that are not started
	active int       // number of running tasks
	seen   int       // files and folders examined
	over   bool      // the limit maxIndexed was reached
	faults []Attempt
	fatal  error // error that left the walk incomplete; nil if none
}

// A rootWalk is the state of a walk in one path of the operator. The walk's mutex guards the fields
// that change.
type rootWalk struct {
	path    string
	base    string
	file    bool
	was     map[string]*folder // folders of the previous walk by rel; not modified
	known   int                // number of folders in was that still exist
	folders []*folder
	changed bool
}

// newRootWalk returns a rootWalk for path. old holds the folders that the previous walk found, if
// any.
func newRootWalk(path string, old []*folder) *rootWalk {
	r := &rootWalk{path: path, was: make(map[string]*folder, len(old))}
	for _, d := range old {
		r.was[d.rel] = d
	}
	return r
}

// run does the walk. It fails if the context is done, or if the process or system runs out of
// descriptors or memory.
func (w *walk) run(roots []*rootWalk) error {
	w.more.L = &w.mu
	for _, r := range roots {
		w.tasks = append(w.tasks, func() { w.root(r) })
	}
	var workers sync.WaitGroup
	for range walkers {
		workers.Go(w.work)
	}
	workers.Wait()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.fatal != nil {
		return w.fatal
	}
	for _, r := range roots {
		slices.SortFunc(r.folders, func(a, b *folder) int { return strings.Compare(a.rel, b.rel) })
		r.changed = r.changed || r.known != len(r.was)
	}
	slices.SortFunc(w.faults, func(a, b Attempt) int { return strings.Compare(a.Where, b.Where) })
	w.faults = w.faults[:min(len(w.faults), maxFaults)]
	return nil
}

// work runs tasks until no task is left or running.
func (w *walk) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.tasks) == 0 && w.active > 0 {
			w.more.Wait()
		}
		if len(w.tasks) == 0 {
			return
		}
		last := len(w.tasks) - 1 // the newest first, which keeps the list short
		task := w.tasks[last]
		w.tasks[last] = nil
		w.tasks = w.tasks[:last]
		w.active++
		w.mu.Unlock()
		if w.ctx.Err() == nil {
			task()
		}
		w.mu.Lock()
		if w.active--; w.active == 0 && len(w.tasks) == 0 {
			w.more.Broadcast()
		}
	}
}

func (w *walk) addTask(task func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, task)
	w.more.Signal()
}

// count counts the file or folder at path, and reports whether it may be examined. The first file
// beyond the limit becomes a fault.
func (w *walk) count(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen < maxIndexed {
		w.seen++
		return true
	}
	if !w.over {
		w.over = true
		w.faults = append(w.faults, Attempt{path, fmt.Sprintf("not indexed, like all files after this one: the limit is %d files", maxIndexed)})
	}
	return false
}

// fault records that the file or folder at path could not be examined.
func (w *walk) fault(path string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if exhausted(err) && w.fatal == nil {
		w.fatal = err
	}
	if len(w.faults) < 16*maxFaults {
		w.faults = append(w.faults, Attempt{path, reasonFor(err)})
	}
}

func (w *walk) addFolder(r *rootWalk, d *folder, changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.folders = append(r.folders, d)
	if r.was[d.rel] != nil {
		r.known++
	}
	r.changed = r.changed || changed
}

// root starts the walk of a root, which is a folder or a file. If the operator named a symbolic
// link, root follows it.
func (w *walk) root(r *rootWalk) {
	info, err := os.Stat(r.path)
	if err != nil {
		w.fault(r.path, err)
		return
	}
	r.base = r.path
	if info.IsDir() {
		w.folder(r, "", info)
		return
	}
	r.base, r.file = filepath.Dir(r.path), true
	d := &folder{files: []record{{name: filepath.Base(r.path)}}}
	if was := r.was[""]; was != nil && len(was.files) == 1 && was.files[0].name == d.files[0].name {
		d.files[0] = was.files[0]
	}
	w.files(r, d, 0, 1)
	w.addFolder(r, d, false)
}

// folder examines a folder. It follows symbolic links to files, but not to folders.
func (w *walk) folder(r *rootWalk, rel string, info fs.FileInfo) {
	path := filepath.Join(r.base, rel)
	if !w.count(path) {
		return
	}
	was := r.was[rel]
	d := &folder{rel: rel, state: stateOf(info)}
	same := was != nil && was.settled && was.state == d.state
	if same {
		w.mu.Lock()
		w.seen += len(was.files)
		w.mu.Unlock()
		d.settled, d.folders = true, was.folders
		if w.shallow && !was.faulty {
			d = was
		} else {
			d.files = slices.Clone(was.files)
		}
	} else {
		d.settled = d.state.settled(time.Now())
		if err := w.list(d, path, was); err != nil {
			w.fault(path, err)
			d.settled = false
		}
	}
	changed := was == nil || !same && !sameNames(was, d)
	for _, name := range d.folders {
		rel := filepath.Join(rel, name)
		w.addTask(func() {
			info, err := os.Lstat(filepath.Join(r.base, rel))
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					w.fault(filepath.Join(r.base, rel), err)
				}
			} else if info.IsDir() {
				w.folder(r, rel, info)
			}
		})
	}
	if d != was {
		for from := walkChunk; from < len(d.files); from += walkChunk {
			w.addTask(func() { w.files(r, d, from, min(len(d.files), from+walkChunk)) })
		}
		w.files(r, d, 0, min(len(d.files), walkChunk))
	}
	w.addFolder(r, d, changed)
}

// sameNames reports whether two versions of a folder have the same state, and the same names of
// files and subfolders.
func sameNames(a, b *folder) bool {
	return a.settled == b.settled && a.state == b.state && slices.Equal(a.folders, b.folders) &&
		slices.EqualFunc(a.files, b.files, func(a, b record) bool { return a.name == b.name })
}

// list reads the names in the folder at path into d. was is the folder as the previous walk found
// it, or nil. Files that are also in was keep their records. After an error, d has the names read
// before the error.
func (w *walk) list(d *folder, path string, was *folder) error {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for err == nil && w.ctx.Err() == nil {
		var entries []fs.DirEntry
		entries, err = f.ReadDir(walkChunk)
		for _, e := range entries {
			switch {
			case e.IsDir():
				d.folders = append(d.folders, e.Name())
			case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
				if !w.count(filepath.Join(path, e.Name())) {
					err = io.EOF
					break
				}
				d.files = append(d.files, record{name: e.Name()})
			}
		}
	}
	slices.Sort(d.folders)
	slices.SortFunc(d.files, func(a, b record) int { return strings.Compare(a.name, b.name) })
	if was != nil {
		for i := range d.files {
			if r := was.file(d.files[i].name); r != nil {
				d.files[i] = *r
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func (w *walk) files(r *rootWalk, d *folder, from, to int) {
	changed, faulty := false, false
	for i := from; i < to && w.ctx.Err() == nil; i++ {
		now, ok := w.look(filepath.Join(r.base, d.rel, d.files[i].name), &d.files[i])
		if !now.equal(&d.files[i]) {
			changed = true
			d.files[i] = now
		}
		faulty = faulty || !ok
	}
	if changed || faulty {
		w.mu.Lock()
		r.changed = r.changed || changed
		d.faulty = d.faulty || faulty
		w.mu.Unlock()
	}
}

// look returns the current record of the file at path; r is the previous one. If look cannot
// examine the file, it returns false: the next walk then tries again.
func (w *walk) look(path string, r *record) (record, bool) {
	none := record{name: r.name}
	info, err := os.Stat(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !isLoop(err) {
			w.fault(path, err)
		}
		return none, false
	}
	if !info.Mode().IsRegular() {
		return none, false
	}
	if r.settled && r.content != unread && r.state == stateOf(info) {
		return *r, true
	}
	w.opens.Add(1)
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err == nil {
		defer f.Close()
		info, err = f.Stat()
	}
	if err != nil {
		w.fault(path, err)
		return none, false
	}
	if !info.Mode().IsRegular() {
		return none, false
	}
	now := record{name: r.name, state: stateOf(info)}
	now.settled = now.state.settled(time.Now())
	if err := w.read(&now, f, info.Size()); err != nil {
		w.fault(path, err)
		now.settled = false
		return now, false
	}
	return now, true
}

// read sets the content of r, from the file f of size bytes. A file of another type is not an
// error: operators name folders that hold more than debug files.
func (w *walk) read(r *record, f *os.File, size int64) error {
	head := headReader{r: f}
	n, err := f.ReadAt(head.buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head.n = n
	switch {
	case strings.HasPrefix(string(head.buf[:n]), elf.ELFMAG):
		r.content = elfFile
		r.id, err = Read(&head, size)
		if err != nil && !errors.Is(err, ErrNoID) {
			return err
		}
	case isZip(r.name, head.buf[:n]):
		r.content = archive
		r.members, err = readMembers(w.ctx, f, size)
		return err
	default:
		r.content = foreign
	}
	return nil
}

// A headReader buffers the beginning of a file: it has the headers and usually the notes.
type headReader struct {
	r   io.ReaderAt
	buf [headSize]byte
	n   int // valid bytes in buf
}

func (h *headReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= 0 && off <= int64(h.n)-int64(len(p)) {
		return copy(p, h.buf[off:h.n]), nil
	}
	return h.r.ReadAt(p, off)
}
