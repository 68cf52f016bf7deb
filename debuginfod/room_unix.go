//go:build linux || darwin

package debuginfod

import (
	"os"

	"golang.org/x/sys/unix"
)

// room returns the number of bytes that users can still write to the file system of f, and its size
// in bytes. ok is false if the system does not report them.
func room(f *os.File) (free, all int64, ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var st unix.Statfs_t
	if e := conn.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &st) }); e != nil || err != nil {
		return 0, 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), true
}
