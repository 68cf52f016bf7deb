package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// create is open, but makes the directory when it is missing.
func (c *Cache) create() (*os.Root, error) {
	root, err := c.open()
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	return c.open()
}

// lock waits, at most patience, until no other process fetches k, and holds the others off until release is called. It never
// fails but with ctx: where files cannot be locked, or the holder takes too long, a file may be fetched twice.
func (c *Cache) lock(ctx context.Context, k key, patience time.Duration) (release func(), err error) {
	nothing := func() {}
	root, err := c.create()
	if err != nil {
		return nothing, nil
	}
	defer root.Close()
	makeFile(root, lockName, "", 0o600) // so that no other user can lock it
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

// A spool is a file that is being written: beside its place in the cache or, where that cannot be, without a name elsewhere.
type spool struct {
	c     *Cache
	k     key
	f     *os.File
	n     int64    // bytes written
	sure  int64    // bytes up to which there was room
	root  *os.Root // nil when the file is not in the cache
	temp  string   // its name below root, or the path of a loose file where it could not be removed while open
	loose error    // why it is not in the cache
}

// spool begins the file of k.
func (c *Cache) spool(k key) (*spool, error) {
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

// begin makes the temporary file in the cache.
func (s *spool) begin() error {
	dir := s.k.id.String()
	var err error
	for range 3 { // another process may be removing the directory because it is empty, or just have taken the name
		if err = s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		var info fs.FileInfo
		if info, err = s.root.Lstat(dir); err != nil {
			continue
		}
		if err := checkDir(info); err != nil {
			return err
		}
		removeStale(s.root, dir, time.Now())
		s.temp = s.k.path() + "." + randomName()
		s.f, err = s.root.OpenFile(s.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
		if err == nil {
			return nil
		}
	}
	return err
}

// randomName is six letters or digits, as mkstemp makes them.
func randomName() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b [6]byte
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b[:])
}

// loosen moves what was written so far into a file without a name outside of the cache, because of err.
func (s *spool) loosen(err error) error {
	old, oldRoot, oldTemp := s.f, s.root, s.temp
	s.loose, s.f, s.root, s.temp, s.sure = err, nil, nil, "", 0
	if old != nil {
		defer old.Close()
	}
	if oldRoot != nil {
		defer oldRoot.Close()
		defer oldRoot.Remove(oldTemp)
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

// Write appends p. When the cache takes no more, the file goes on outside of it.
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

// write appends p to a file system that is not nearly full.
func (s *spool) write(p []byte) (int, error) {
	if s.n >= s.sure {
		if free, all, ok := room(s.f); ok && free < min(all/keepFree, keepFreeMost) {
			return 0, errNoRoom
		}
		s.sure = s.n + roomEvery
	}
	return s.f.Write(p)
}

// errNoRoom is about a file system that would be full soon.
var errNoRoom = fmt.Errorf("nearly full: %w", syscall.ENOSPC)

// abandon removes the file.
func (s *spool) abandon() {
	if s.f != nil {
		s.f.Close()
	}
	switch {
	case s.root != nil:
		s.root.Remove(s.temp)
		s.root.Close()
	case s.temp != "":
		os.Remove(s.temp)
	}
}

// commit gives the verified file its name and returns it open, to be shared. modified is the server's time of it, if known.
func (s *spool) commit(modified time.Time, where string) (*shared, error) {
	if s.loose == nil {
		err := s.finish(modified)
		if err == nil {
			err = s.root.Rename(s.temp, s.k.path())
		}
		if err != nil {
			if err = s.loosen(err); err != nil {
				s.abandon()
				return nil, err
			}
		}
	}
	if s.loose != nil {
		return &shared{f: s.f, size: s.n, path: where, where: where, remove: s.temp}, nil
	}
	if d, err := s.root.Open(s.k.id.String()); err == nil {
		d.Sync() // the name; where that cannot be, a crash costs the file
		d.Close()
	}
	s.root.Close()
	return &shared{f: s.f, size: s.n, path: filepath.Join(s.c.dir, s.k.path()), where: where}, nil
}

// finish makes the file durable, with the mode and the times that it will have.
func (s *spool) finish(modified time.Time) error {
	if err := s.f.Chmod(0o400); err != nil {
		return err
	}
	s.root.Chtimes(s.temp, time.Now(), modified)
	return s.f.Sync()
}

// missFor returns how long a miss holds.
func (c *Cache) missFor() time.Duration {
	root, err := c.open()
	if err != nil {
		return defaultMiss
	}
	defer root.Close()
	return c.control(root, missFile, defaultMiss, false)
}

// rememberMiss remembers on disk that there is no k.
func (c *Cache) rememberMiss(k key) {
	root, err := c.create()
	if err != nil {
		return
	}
	defer root.Close()
	dir := k.id.String()
	root.Mkdir(dir, 0o700)
	info, err := root.Lstat(dir)
	if err != nil || checkDir(info) != nil {
		return
	}
	c.control(root, missFile, defaultMiss, true)
	if f, info, err := openRegular(root, k.path(), os.O_RDONLY); err == nil {
		f.Close()
		if info.Size() == 0 {
			root.Remove(k.path()) // an expired miss
		}
	}
	makeFile(root, k.path(), "", 0o644)
}

// forget removes k's file, which was found to be none.
func (c *Cache) forget(k key) {
	if root, err := c.open(); err == nil {
		defer root.Close()
		root.Remove(k.path())
	}
}

// A shared is an open file that several finders' answers read.
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

// Close gives the file up; the last one closes it.
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

// file returns the file for one user, who is counted already.
func (s *shared) file(c *Client) *buildid.File {
	return buildid.NewOSFile(s.f, s.size, s.path, s.where, &ref{c, s})
}

// removeStale removes the temporary files in dir whose writers are gone.
func removeStale(root *os.Root, dir string, now time.Time) {
	d, err := root.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxCacheFiles)
	for _, e := range entries {
		if tempName(e.Name()) {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleTemp {
				root.Remove(filepath.ToSlash(filepath.Join(dir, e.Name())))
			}
		}
	}
}
