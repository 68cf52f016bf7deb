package symindex

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/internal/newfile"
)

// A Dir is a directory of indexes, one for each build ID. It is safe for concurrent use, even by
// several processes: a new index replaces the old one only once it is complete.
type Dir struct {
	Path string
	// Budget bounds the bytes of all indexes; 0 means DefaultBudget. Beyond it, the least recently
	// used indexes are removed.
	Budget int64
}

const (
	suffix     = ".symindex"
	newPrefix  = "new-"
	usedAgain  = time.Hour      // age from which opening an index renews its modification time
	leftBehind = 24 * time.Hour // age at which temporary files of killed processes are removed
)

func (d Dir) file(s Source) string { return filepath.Join(d.Path, hex.EncodeToString(s.ID)+suffix) }

// Open opens the index of s; the caller closes it. The error wraps fs.ErrNotExist if s has no
// index, ErrStale if the index was made from another file, and ErrDamaged if the index is damaged.
func (d Dir) Open(s Source) (*Index, error) {
	if len(s.ID) == 0 {
		return nil, fs.ErrNotExist
	}
	path := d.file(s)
	if err := d.check(); err != nil {
		return nil, err
	}
	x, err := open(path)
	if err != nil {
		return nil, err
	}
	if !x.IsOf(s) {
		x.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrStale)
	}
	return x, nil
}

// open opens the index at path. It treats links, other irregular files and files of other users as
// damaged: other users may once have been able to write the directory. It never waits.
func open(path string) (*Index, error) {
	// opening a device can have an effect: check the type first
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file: %w", path, ErrDamaged)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwn(info); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, err, ErrDamaged)
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size < headerSize || size > math.MaxInt || size > maxIndexBytes+maxIndexBytes/blockSize*4+4 {
		return nil, fmt.Errorf("%s: %w", path, ErrDamaged)
	}
	data, mapped, err := load(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	x, err := New(data)
	if err != nil {
		if mapped {
			unmap(data)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x.mapped = mapped
	if now := time.Now(); now.Sub(info.ModTime()) > usedAgain {
		// if Chtimes fails, indexes are removed in the order of their creation
		os.Chtimes(path, now, now)
	}
	return x, nil
}

// check fails if other users may have put indexes into d. Such indexes are not used.
func (d Dir) check() error {
	info, err := os.Stat(d.Path)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory") // opening a FIFO would wait for its other end
	}
	if err == nil {
		err = checkOwn(info)
	}
	if err != nil {
		return fmt.Errorf("indexes in %s: %w", d.Path, err)
	}
	return nil
}

// Remove removes the index of s, even if it is stale.
func (d Dir) Remove(s Source) error {
	if len(s.ID) == 0 {
		return nil
	}
	return os.Remove(d.file(s))
}

// A Pending is an unfinished index. End it with Commit or Abort. It is not safe for concurrent use.
type Pending struct {
	*Writer
	dir  Dir
	name string
	root *os.Root
	f    *newfile.File
}

// Create starts to write the index of s. Commit gives the index its name.
func (d Dir) Create(s Source) (*Pending, error) {
	if len(s.ID) == 0 {
		return nil, errors.New("index: the file has no build ID")
	}
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	d.Trim() // also here, in case all processes end before their Commit
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, err
	}
	f, err := newfile.Create(root, newPrefix)
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Pending{NewWriter(f.File, s), d, filepath.Base(d.file(s)), root, f}, nil
}

// Commit completes the index and gives it its name. Then it removes indexes beyond the budget. size
// is in bytes.
func (n *Pending) Commit() (size int64, err error) {
	defer n.Abort()
	if err := n.Finish(); err != nil {
		return 0, err
	}
	info, err := n.f.Stat()
	if err != nil {
		return 0, err
	}
	if err := n.f.Publish(n.name); err != nil {
		return 0, err
	}
	n.Abort()
	n.dir.Trim()
	return info.Size(), nil
}

// Abort removes the unfinished index. It does nothing after Commit.
func (n *Pending) Abort() {
	if n.f == nil {
		return
	}
	n.f.Discard()
	n.root.Close()
	n.f = nil
}

// Trim removes old temporary files, and the least recently used indexes beyond the budget.
func (d Dir) Trim() {
	all := newfile.Tidy(d.Path, newPrefix, suffix, leftBehind)
	var sum int64
	for _, index := range all {
		sum += index.Size()
	}
	budget := cmp.Or(d.Budget, DefaultBudget)
	for _, index := range all {
		if sum <= budget {
			return
		}
		if os.Remove(filepath.Join(d.Path, index.Name())) == nil {
			sum -= index.Size()
		}
	}
}
