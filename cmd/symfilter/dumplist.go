package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/newfile"
	"github.com/symfilter/symfilter/internal/wording"
)

const (
	maxDumps     = 65536    // dump files in the list: more than any log of a test run has
	maxDumpBytes = 64 << 20 // bytes of the list, which stays in memory for the next save
	saveShare    = 10       // saves of the list take at most 1/10 of the time
)

// A dumpList is the file of --dumpfile-output. It lists the dump files of all inputs so far with
// their contexts, in the format of Fuchsia's symbolizer. A dumpList is safe for concurrent use.
type dumpList struct {
	mu     sync.Mutex
	path   string
	diag   *diagnostics
	json   []byte // the list as a JSON array, without its closing bracket
	n      int
	full   bool // the limit was exceeded, which was reported
	dirty  bool // the file lacks entries
	failed bool // the file cannot be written, which was reported

	saved time.Time     // last save
	took  time.Duration // duration of the last save
}

func newDumpList(path string, diag *diagnostics) *dumpList {
	d := &dumpList{path: path, diag: diag, json: []byte{'['}}
	d.save()
	return d
}

// add adds a dump file. It returns false at the limit, and after an error.
func (d *dumpList) add(dump filter.Dump) (more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed || d.full {
		return false
	}
	object, err := json.MarshalIndent(dump, "  ", "  ")
	if err == nil && (d.n == maxDumps || len(d.json)+len(object) > maxDumpBytes) {
		d.full = true
		d.diag.line("%s lists only the first %s", d.path, wording.Count(int64(d.n), "dump file", "dump files"))
		return false
	}
	if err != nil {
		d.fail(err)
		return false
	}
	if d.n > 0 {
		d.json = append(d.json, ',')
	}
	d.json = append(append(d.json, "\n  "...), object...)
	d.n++
	d.dirty = true
	return true
}

// behind returns e with a writer that saves the list after each write. A dump file is then in the
// saved list when its line is printed. If saves take more than a tenth of the time, they wait for a
// pause or the end of the input.
func (d *dumpList) behind(e engine) engine {
	inner := e
	e.WriteCloser = savingDumps{e, d}
	e.unfinished = func() bool { return d.due(0) || inner.unfinished() }
	e.flush = func() error {
		err := inner.flush()
		d.saveIfDirty()
		return err
	}
	return e
}

// A savingDumps is a writer for an engine that saves a dumpList after each write.
type savingDumps struct {
	engine
	list *dumpList
}

func (s savingDumps) Write(p []byte) (int, error) {
	n, err := s.engine.Write(p)
	if s.list.due(saveShare) {
		s.list.saveIfDirty()
	}
	return n, err
}

func (s savingDumps) Close() error {
	err := s.engine.Close()
	s.list.saveIfDirty()
	return err
}

// due reports whether the file lacks entries, and the last save is long enough ago: at least share
// times as long as that save took.
func (d *dumpList) due(share time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dirty && time.Since(d.saved) >= share*d.took
}

func (d *dumpList) saveIfDirty() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dirty {
		d.save()
	}
}

func (d *dumpList) save() {
	start := time.Now()
	end := "\n]\n"
	if d.n == 0 {
		end = "]\n"
	}
	if err := replaceFile(d.path, d.json, []byte(end)); err != nil {
		d.fail(err)
	}
	d.dirty = false
	d.saved = time.Now()
	d.took = d.saved.Sub(start)
}

// fail reports an error once, and stops the list.
func (d *dumpList) fail(err error) {
	d.dirty = false
	if !d.failed {
		d.failed = true
		d.diag.line("write %s: %v", d.path, wording.Cause(err))
	}
}

var errNotRegular = errors.New("not a regular file")

// replaceFile replaces the content of a file in one step: a reader sees the old or the new content.
// A missing file is made with mode 0666 less the umask.
func replaceFile(path string, parts ...[]byte) error {
	old, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(path, nil, 0o666); err != nil {
			return err
		}
		old, err = os.Stat(path)
	}
	if err != nil {
		return err
	}
	if !old.Mode().IsRegular() {
		return errNotRegular
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := newfile.Create(root, "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.Chmod(old.Mode().Perm()); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Publish(filepath.Base(path))
}
