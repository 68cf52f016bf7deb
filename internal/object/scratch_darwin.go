package object

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory reports whether a file system is in memory, which is not known here.
func inMemory(*unix.Statfs_t) bool { return false }

// allocate gives file its blocks.
func allocate(file *os.File, size int64) error { return fill(file, size) }
