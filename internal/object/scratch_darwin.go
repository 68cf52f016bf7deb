package object

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory reports false: this system does not report whether a file system is in memory.
func inMemory(*unix.Statfs_t) bool { return false }

// populate does nothing: this system has no such advice.
func populate([]byte) {}

// allocate allocates the blocks of file.
func allocate(file *os.File, size int64) error { return fill(file, size) }

// unnamed returns a new file in dir whose name was removed.
func unnamed(dir string) (*os.File, error) { return removed(dir) }
