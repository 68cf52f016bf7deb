package object

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory reports whether a file system is in memory, not on a disk.
func inMemory(disk *unix.Statfs_t) bool {
	switch uint32(disk.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return true
	}
	return false
}

// allocate allocates the blocks of file.
func allocate(file *os.File, size int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return fill(file, size)
	}
	return err
}
