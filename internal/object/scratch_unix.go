//go:build linux || darwin

package object

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const canMap = true

// anonymous returns size bytes of memory outside of the heap, in a mapping without a file. Pages
// take memory from their first use on.
func anonymous(size uint64) ([]byte, error) {
	if size > math.MaxInt {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// InMemory reports whether a directory, or its nearest existing parent, is in memory.
func InMemory(dir string) bool {
	for dir != "" {
		var disk unix.Statfs_t
		if err := unix.Statfs(dir, &disk); err == nil {
			return inMemory(&disk)
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return false
}

// scratch returns a new file of size bytes in dir, without a name, and its mapping for reading. It
// allocates all blocks of the file.
func scratch(dir string, size uint64) (file *os.File, b []byte, err error) {
	if size > math.MaxInt64-spareDisk || size > math.MaxInt {
		return nil, nil, unix.ENOSPC
	}
	file, err = unnamed(dir)
	if err != nil {
		return nil, nil, err
	}
	opened := file
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		return nil, nil, fmt.Errorf("statfs: %w", err)
	}
	if inMemory(&disk) {
		return nil, nil, ErrInMemory
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < spareDisk || free-spareDisk < size {
		return nil, nil, fmt.Errorf("%d MiB are free, and %d MiB must stay free: %w", free>>20, uint64(spareDisk)>>20, unix.ENOSPC)
	}
	if err := allocate(file, int64(size)); err != nil {
		return nil, nil, err
	}
	b, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map: %w", err)
	}
	return file, b, nil
}

// fill allocates blocks by writing zeros, on systems without another way.
func fill(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for size > 0 {
		n, err := file.Write(zeros[:min(size, int64(len(zeros)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

// removed returns a new file in dir after removing its name. A process that is killed in between
// leaves the name.
func removed(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, ".symfilter-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
