package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/newfile"
)

// create opens the cache's directory as open does. It creates a missing directory.
func (c *diskCache) create() (*os.Root, error) {
	root, err := c.open()
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	return c.open()
}

// lock locks k against other processes, and returns a function that unlocks it. If another process
// holds the lock, it waits for at most the duration patience. lock fails only if ctx ends. If files
// cannot be locked, or the other process takes too long, both processes may fetch the file.
func (c *diskCache) lock(ctx context.Context, k key, patience time.Duration) (release func(), err error) {
	nothing := func() {}
	root, err := c.create()
	if err != nil {
		return nothing, nil
	}
	defer root.Close()
	makeFile(root, lockName, "", 0o600) // no other user may be able to lock it
	f, _, err := openRegular(root, lockName, os.O_RDWR)
	if err != nil {
		return nothing, nil
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := lockFile(patient, f, k); err != nil {
		f.Close()
		return nothing, context.Cause(ctx)
	}
	return func() { f.Close() }, nil
}

// A spool is an unfinished file: in the cache or, if that is impossible, in the directory of
// temporary files.
type spool struct {
	c    *diskCache
	k    key
	f    *os.File
	n    int64         // bytes written
	sure int64         // size up to which there was enough free space at the last check
	root *os.Root      // the cache's directory; nil if the file is not in the cache
	file *newfile.File // the file in the cache; nil if it is not there
	// path of a temporary file that could not be removed while open; empty otherwise
	temp  string
	loose error // reason why the file is not in the cache; nil if it is
}

// spool creates an empty spool for k: in the cache or, if that fails, among the temporary files.
// After an error, the caller must still call abandon.
func (c *diskCache) spool(k key) (*spool, error) {
	s := &spool{c: c, k: k}
	root, err := c.create()
	if err == nil {
		s.root = root
		if err = s.begin(); err != nil {
			root.Close()
			s.root = nil
		}
	}
	if err != nil {
		return s, s.loosen(err)
	}
	return s, nil
}

// begin creates the file in the cache.
func (s *spool) begin() error {
	var err error
	for range 3 { // another process may be removing the directory because it is empty
		if err = s.makeDir(); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		removeStale(s.root, s.k.id.String(), time.Now())
		if s.file, err = newfile.Create(s.root, s.k.path()+"."); err == nil {
			s.f = s.file.File
			return nil
		}
	}
	return err
}

// makeDir creates the directory of the build ID, or checks an existing one.
func (s *spool) makeDir() error {
	dir := s.k.id.String()
	if err := s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := s.root.Lstat(dir)
	if err != nil {
		return err
	}
	return checkDir(info)
}

// loosen moves the file out of the cache, to a temporary file, because the cache failed with err.
func (s *spool) loosen(err error) error {
	old, oldRoot := s.file, s.root
	s.loose, s.f, s.root, s.file, s.sure = err, nil, nil, nil, 0
	if oldRoot != nil {
		defer oldRoot.Close()
		defer oldRoot.Remove(s.k.id.String()) // fails unless it is empty
	}
	if old != nil {
		defer old.Discard()
	}
	f, err := os.CreateTemp("", "symfilter-")
	if err != nil {
		return err
	}
	s.f = f
	if err := os.Remove(f.Name()); err != nil {
		s.temp = f.Name()
	}
	if old != nil {
		if _, err := io.Copy(f, io.NewSectionReader(old, 0, s.n)); err != nil {
			return err
		}
	}
	return nil
}

// Write appends p. If the cache fails, it continues the file outside of the cache.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.write(p)
	if err != nil && s.loose == nil {
		if err = s.loosen(err); err == nil {
			n, err = s.write(p)
		}
	}
	s.n += int64(n)
	return n, err
}

// write appends p, unless the file system is nearly full.
func (s *spool) write(p []byte) (int, error) {
	if s.n >= s.sure {
		if free, all, ok := room(s.f); ok && free < min(all/keepFree, keepFreeMost) {
			return 0, errNoRoom
		}
		s.sure = s.n + roomEvery
	}
	return s.f.Write(p)
}

var errNoRoom = fmt.Errorf("nearly full: %w", syscall.ENOSPC)

func (s *spool) abandon() {
	switch {
	case s.root != nil:
		s.file.Discard()
		s.root.Remove(s.k.id.String()) // fails unless it is empty
		s.root.Close()
	case s.f != nil:
		s.f.Close()
		if s.temp != "" {
			os.Remove(s.temp)
		}
	}
}

// commit gives the verified file its name and returns it open. modified is the file's time at the
// server; zero if unknown.
func (s *spool) commit(modified time.Time, where string) (*shared, error) {
	if s.loose == nil {
		if err := s.finish(modified); err != nil {
			if err = s.loosen(err); err != nil {
				s.abandon()
				return nil, err
			}
		}
	}
	if s.loose != nil {
		return &shared{f: s.f, size: s.n, path: where, where: where, remove: s.temp}, nil
	}
	s.root.Close()
	return &shared{f: s.f, size: s.n, path: filepath.Join(s.c.dir, s.k.path()), where: where}, nil
}

// finish sets the mode and times of the file, syncs it and gives it its name.
func (s *spool) finish(modified time.Time) error {
	if err := s.f.Chmod(0o400); err != nil {
		return err
	}
	s.file.Chtimes(time.Now(), modified)
	err := s.file.Publish(s.k.path())
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed because it was empty
		if err = s.makeDir(); err == nil {
			err = s.file.Publish(s.k.path())
		}
	}
	if err == nil {
		s.root.Remove(s.k.missedByPath()) // record of the miss that the file replaces
	}
	return err
}

// A shared is an open file that several callers read. It is closed when the last caller's ref is
// closed.
type shared struct {
	f           *os.File
	size        int64
	path, where string
	remove      string
	refs        int // guarded by Client.mu
}

// A ref is one user of a shared file.
type ref struct {
	c *Client
	s *shared
}

// Close releases the reference. Releasing the last reference closes the file.
func (r *ref) Close() error {
	r.c.mu.Lock()
	s := r.s
	last := false
	if s != nil {
		s.refs--
		last = s.refs == 0
		r.s = nil
	}
	r.c.mu.Unlock()
	if !last {
		return nil
	}
	return s.close()
}

func (s *shared) close() error {
	err := s.f.Close()
	if s.remove != "" {
		os.Remove(s.remove)
	}
	return err
}

// file returns the file for one caller. refs already counts the caller.
func (s *shared) file(c *Client) *buildid.File {
	return buildid.NewFile(s.f, s.size, s.path, s.where, &ref{c, s})
}

// removeStale removes the temporary files in dir that have not been modified for staleTemp, and
// reports whether it removed any. It assumes that their writers have ended.
func removeStale(root *os.Root, dir string, now time.Time) (removed bool) {
	d, err := root.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxCacheFiles)
	for _, e := range entries {
		if tempName(e.Name()) {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleTemp {
				removed = root.Remove(filepath.ToSlash(filepath.Join(dir, e.Name()))) == nil || removed
			}
		}
	}
	return removed
}
