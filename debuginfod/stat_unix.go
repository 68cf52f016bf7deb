//go:build unix

package debuginfod

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags are for files of other users: opening follows no link, waits for no writer, and
// acquires no controlling terminal.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// checkOwner fails if a file or directory belongs to a user other than root and the process's
// effective user.
func checkOwner(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return errors.New("owned by another user")
	}
	return nil
}

// checkMode fails if users other than the owner can write to a file or directory.
func checkMode(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("writable by its group or others (chmod go-w)")
	}
	return nil
}
