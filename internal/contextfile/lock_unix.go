//go:build unix

package contextfile

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// locks is true: files can be locked on this system.
const locks = true

// planted reports whether another user may have made the file: everybody may write to its folder,
// and its owner is neither this user nor root.
func planted(folder, file fs.FileInfo) bool {
	const everybody = 0o002
	owner, ok := file.Sys().(*syscall.Stat_t)
	return ok && folder.Mode()&everybody != 0 && owner.Uid != 0 && int(owner.Uid) != os.Geteuid()
}

// lock locks f until it is closed. It returns false if another process has locked f. On a file
// system without locks, it returns true.
func lock(f *os.File) (ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	ok = true
	conn.Control(func(fd uintptr) { ok = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK })
	return ok
}
