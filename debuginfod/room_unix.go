//go:build linux || darwin

package debuginfod

import (
	"os"

	"golang.org/x/sys/unix"
)

// room returns how many bytes a user can still write to the file system of f, and how many there are in all. It is not ok where the
// system does not say.
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
