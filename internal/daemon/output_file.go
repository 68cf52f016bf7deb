package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/seldom"
	"github.com/symfilter/symfilter/internal/written"
)

const (
	defaultMode      = 0o640
	defaultOpenFiles = 64
	maxFileName      = 255 // bytes, on most file systems

	// interval between checks that a file still has its name
	checkEvery = 250 * time.Millisecond
	// time between a write and its sync, with "sync: second"
	syncEvery = time.Second
	// reopenWait bounds how long SIGHUP waits for a blocked output, which then reopens its files at
	// the next write.
	reopenWait = 100 * time.Millisecond

	peerPlace = "{peer}"
)

// A fileOutput appends to a file, or to a file for each peer. It creates a missing file, and a new
// file if the old file was renamed or removed. If a killed process has left an unfinished last
// line, the fileOutput ends that line first.
type fileOutput struct {
	persistent
	dir, before, after string // a file's name is before + peer + after
	each               bool   // each peer has its own file
	mode               fs.FileMode
	limit              int
	syncs              string

	turns  turns // guards files, the fields of each outFile, and told
	closed bool
	stale  atomic.Bool // all files must be reopened

	mu    sync.Mutex
	files map[string]*outFile // by name; changed with both the turn and mu held
	uses  int64
	due   *time.Timer // starts the next sync; nil if none is due
	last  error       // sync error since the last checkpoint: lines may be lost

	denied func(err error, dir string) error // explains errors of opening files; may be nil
	fsync  func(*os.File) error
	failed seldom.Limiter
}

type outFile struct {
	f       *os.File
	info    fs.FileInfo
	regular bool
	serial  int // distinguishes files of the same name
	checked time.Time
	used    int64
	again   bool // f must be reopened before its next use
	line    lineEnd
	dirty   bool // guarded by mu
}

// newFileOutput returns the output, or an error if the file or its folder is not writable.
func newFileOutput(c Output, log *slog.Logger) (*fileOutput, error) {
	o := &fileOutput{
		persistent: persistent{log: log},
		mode:       fs.FileMode(c.Mode), limit: c.OpenFiles, syncs: c.Sync,
		turns: newTurns(), files: make(map[string]*outFile), fsync: (*os.File).Sync,
	}
	var base string
	o.dir, base = filepath.Split(c.File)
	if o.dir == "" {
		o.dir = "."
	}
	if o.before, o.after, o.each = strings.Cut(base, peerPlace); strings.Contains(o.dir+o.after, peerPlace) {
		return nil, fmt.Errorf("output.file: %s may appear only once, and not in a folder's name: all peers' files are in one folder", peerPlace)
	}
	if base == "" || len(base) > maxFileName {
		return nil, fmt.Errorf("output.file: %q does not end with a file name", c.File)
	}
	if o.mode == 0 {
		o.mode = defaultMode
	}
	if o.limit <= 0 {
		o.limit = defaultOpenFiles
	}
	if info, err := os.Stat(o.dir); err != nil {
		return nil, fmt.Errorf("output.file: %s: %w; create the folder first", c.File, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("output.file: %s is not a folder", o.dir)
	}
	if !o.each {
		if info, err := os.Stat(c.File); err == nil {
			f, err := openAppend(c.File, info.Mode())
			if err != nil {
				return nil, fmt.Errorf("output.file: %w", err)
			}
			return o, f.Close()
		}
	}
	if err := writable(o.dir); err != nil {
		return nil, fmt.Errorf("output.file: symfilterd cannot write to the folder %s: %w", o.dir, err)
	}
	return o, nil
}

func openAppend(path string, mode fs.FileMode) (*os.File, error) {
	if mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDir) != 0 {
		return nil, fmt.Errorf("%s is not a regular file; output: {stdout: text} writes to a pipe, {connect: ...} to a socket", path)
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
}

func (o *fileOutput) write(ctx context.Context, from *session, p []byte) (n int, err error) {
	name := o.name(from.peer)
	for {
		if err := o.turns.take(ctx); err != nil {
			return 0, err
		}
		n, wait, err := o.writeTo(ctx, name, from, p)
		o.turns.give()
		if !wait || err != nil {
			return n, err
		}
		if err := pause(ctx, linePause); err != nil {
			return 0, err
		}
	}
}

// writeTo writes p to the file called name, and returns the number of bytes written. The result
// wait is true if the file ends with another stream's unfinished line. The caller has the turn.
func (o *fileOutput) writeTo(ctx context.Context, name string, from *session, p []byte) (done int, wait bool, err error) {
	serial := -1
	err = o.insist(ctx, func() error {
		if o.closed {
			return errReplaced
		}
		f, err := o.ready(name)
		if err != nil {
			return err
		}
		if done > 0 && f.serial != serial {
			done = fromLine(p, done)
		}
		serial = f.serial
		first, ok := f.line.ends(from)
		if wait = !ok; wait {
			return nil
		}
		if len(first) > 0 {
			if _, err := f.f.Write(first); err != nil {
				return err
			}
			f.line = lineEnd{}
		}
		n, err := f.f.Write(p[done:])
		f.line.wrote(from, p[done:done+n])
		done += n
		if err != nil {
			f.again = !written.IsFull(err)
			return err
		}
		if o.syncs == "always" {
			if err := o.fsync(f.f); err != nil && f.regular {
				done = 0 // the system may have dropped the written bytes
				return err
			}
			return nil
		}
		o.syncLater(f)
		return nil
	})
	return done, wait, err
}

// ready returns the open file called name. It opens the file if necessary, and reopens it after a
// rotation.
func (o *fileOutput) ready(name string) (*outFile, error) {
	path := filepath.Join(o.dir, name)
	if o.stale.Swap(false) {
		for _, f := range o.files {
			f.again = true
		}
	}
	f := o.files[name]
	now := time.Now()
	if f != nil && !f.again && now.Sub(f.checked) >= checkEvery {
		f.checked = now
		info, err := os.Stat(path)
		f.again = err != nil || !os.SameFile(info, f.info)
	}
	if f == nil || f.again {
		var err error
		if f, err = o.open(path, name, f); err != nil {
			return nil, err
		}
	}
	o.uses++
	f.used = o.uses
	return f, nil
}

// open opens the file at path. before is the previous file of this name, or nil.
func (o *fileOutput) open(path, name string, before *outFile) (*outFile, error) {
	flags := os.O_APPEND | os.O_CREATE | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|flags, o.mode)
	if errors.Is(err, fs.ErrPermission) {
		// the file may be writable but not readable
		f, err = os.OpenFile(path, os.O_WRONLY|flags, o.mode)
	}
	if err != nil && o.denied != nil {
		err = o.denied(err, o.dir)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDir) != 0 {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	next := &outFile{f: f, info: info, regular: info.Mode().IsRegular(), checked: time.Now()}
	switch {
	case before != nil && os.SameFile(before.info, info):
		next.line, next.serial = before.line, before.serial
	case before != nil:
		// a line that began in the old file continues in the new file
		next.line, next.serial = before.line, before.serial+1
		fallthrough
	default:
		if written.IsTorn(f) {
			if _, err := f.Write(newline); err != nil {
				f.Close()
				return nil, err
			}
		}
	}
	if before == nil {
		o.makeRoom()
	} else if err := o.closeFile(before); err != nil {
		o.log.Warn("closing the previous output file has failed", "error", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[name] = next
	return next, nil
}

// makeRoom closes the least recently written file if o.limit files are open.
func (o *fileOutput) makeRoom() {
	for len(o.files) >= o.limit {
		oldest := ""
		for name, f := range o.files {
			if first := o.files[oldest]; first == nil || f.used < first.used {
				oldest = name
			}
		}
		f := o.files[oldest]
		o.mu.Lock()
		delete(o.files, oldest)
		o.mu.Unlock()
		if err := o.closeFile(f); err != nil {
			o.log.Warn("closing a file", "file", oldest, "error", err)
		}
	}
}

// closeFile closes a file. Unless the key sync is never, it first makes the written lines durable.
func (o *fileOutput) closeFile(f *outFile) error {
	o.mu.Lock()
	dirty := f.dirty
	f.dirty = false
	o.mu.Unlock()
	var err error
	if dirty {
		err = o.fsync(f.f)
		o.remember(err)
	}
	return errors.Join(err, f.f.Close())
}

func (o *fileOutput) syncLater(f *outFile) {
	if o.syncs == "never" || !f.regular {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f.dirty = true
	if o.due == nil {
		o.due = time.AfterFunc(syncEvery, func() {
			if err := o.flush(); err != nil {
				o.fail(err)
				if n, ok := o.failed.May(time.Now()); ok {
					o.log.Error("the sync has failed: lines in the output file may not survive a power cut", "error", err, "times", n)
				}
			}
		})
	}
}

// remember keeps the error of a sync until the next checkpoint, since the system reports an error
// only once. After the error, bytes written since the previous sync may be lost.
func (o *fileOutput) remember(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = err
	}
}

// sync makes all written lines durable, unless the key sync is never. It also returns an earlier
// error: see remember.
func (o *fileOutput) sync() error {
	o.flush() // remembers its own error
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.last
	o.last = nil
	return err
}

func (o *fileOutput) flush() error {
	if o.syncs == "never" {
		return nil
	}
	var dirty []*os.File
	o.mu.Lock()
	if o.due != nil {
		o.due.Stop()
		o.due = nil
	}
	for _, f := range o.files {
		if f.dirty {
			f.dirty = false
			dirty = append(dirty, f.f)
		}
	}
	o.mu.Unlock()
	var errs []error
	for _, f := range dirty {
		// a closed file is already synced: see closeFile
		if err := o.fsync(f); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	o.remember(err)
	return err
}

func (o *fileOutput) reopen() error {
	if !o.turns.takeWithin(reopenWait) {
		o.stale.Store(true)
		return nil
	}
	defer o.turns.give()
	if o.each {
		return o.closeAll()
	}
	name := o.before
	f, err := o.open(filepath.Join(o.dir, name), name, o.files[name])
	if err != nil {
		o.stale.Store(true)
		return err
	}
	o.uses++
	f.used = o.uses
	return nil
}

func (o *fileOutput) closeAll() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, o.closeFile(f))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.files)
	return errors.Join(errs...)
}

func (o *fileOutput) close() error {
	o.turns <- struct{}{} // no write is in progress, since no stage uses the output
	defer o.turns.give()
	o.closed = true
	err := o.closeAll()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.due != nil {
		o.due.Stop()
	}
	return err
}

// owns reports whether the output writes to the file of info, or wrote to it before a rotation. An
// input whose pattern matches an output file must skip the file.
func (o *fileOutput) owns(info os.FileInfo) bool {
	name := info.Name()
	is := name == o.before || strings.HasPrefix(name, o.before+".") || strings.HasPrefix(name, o.before+"-")
	if o.each {
		is = strings.HasPrefix(name, o.before) && strings.Contains(name[len(o.before):], o.after)
	}
	if is {
		there, err := os.Stat(filepath.Join(o.dir, name))
		is = err == nil && os.SameFile(there, info)
	}
	if is {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.files {
		if os.SameFile(f.info, info) {
			return true
		}
	}
	return false
}

func (o *fileOutput) name(peer string) string {
	if !o.each {
		return o.before
	}
	return o.before + harmless(peer, maxFileName-len(o.before)-len(o.after)) + o.after
}

// harmless turns a peer's name into a part of a file name, with at most the given number of bytes.
// The result leads to no other folder, is not hidden, and has no control characters.
func harmless(peer string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 {
			return '_'
		}
		return r
	}, peer)
	if strings.HasPrefix(clean, ".") {
		clean = "_" + clean[1:]
	}
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:max(most, 0)], "")
	}
	if clean == "" {
		return "unknown"[:max(0, min(most, len("unknown")))]
	}
	return clean
}
