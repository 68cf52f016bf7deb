//go:build unix

package symindex

import (
	"os"

	"golang.org/x/sys/unix"
)

// load maps the first size bytes of f.
func load(f *os.File, size int) (data []byte, mapped bool, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, false, err
	}
	var mapErr error
	err = conn.Control(func(fd uintptr) { data, mapErr = unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_PRIVATE) })
	if err == nil {
		err = mapErr
	}
	return data, err == nil, err
}

func unmap(data []byte) error { return unix.Munmap(data) }
