package object

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory returns false: this system does not report whether a file system is in memory.
func inMemory(*unix.Statfs_t) bool { return false }

// populate does nothing: this system cannot make pages present in advance.
func populate([]byte) {}

func allocate(file *os.File, size int64) error { return fill(file, size) }

// unnamed returns a new file in dir after removing its name.
func unnamed(dir string) (*os.File, error) { return removed(dir) }
