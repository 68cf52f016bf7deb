//go:build linux || darwin

package object

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

const canMap = true

// scratch returns size bytes of a new file in dir, mapped for writing; the file has no name any more. Its blocks are allocated here: writing to the
// mapping of a file that the disk has no room for would be a fault.
func scratch(dir string, size uint64) (b []byte, err error) {
	if size > math.MaxInt64-spareDisk || size > math.MaxInt {
		return nil, unix.ENOSPC
	}
	file, err := os.CreateTemp(dir, ".symfilter-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			unmap(b)
			b, err = nil, closeErr
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		return nil, fmt.Errorf("statfs: %w", err)
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < spareDisk || free-spareDisk < size {
		return nil, fmt.Errorf("%d MiB are free, %d MiB stay so: %w", free>>20, uint64(spareDisk)>>20, unix.ENOSPC)
	}
	if err := allocate(file, int64(size)); err != nil {
		return nil, err
	}
	b, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return b, nil
}

// fill writes zeros, where the system has no other way.
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
