package object

import (
	"os"

	"golang.org/x/sys/unix"
)

func inMemory(disk *unix.Statfs_t) bool {
	switch uint32(disk.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return true
	}
	return false
}

// unnamed returns a new file in dir that never had a name: a killed process leaves nothing. On file
// systems without such files (NFS, some overlays) it removes the name at once.
func unnamed(dir string) (*os.File, error) {
	if file, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|unix.O_EXCL, 0o600); err == nil {
		return file, nil
	}
	return removed(dir) // reports any other error
}

// populate makes the pages of b present, for writing.
func populate(b []byte) {
	// an error does no harm: the first write makes a page present
	unix.Madvise(b, unix.MADV_POPULATE_WRITE)
}

func allocate(file *os.File, size int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return fill(file, size)
	}
	return err
}
