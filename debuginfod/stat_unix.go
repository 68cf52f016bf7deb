//go:build unix

package debuginfod

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags open what others may have put there: they follow no link, wait for no writer and take no terminal.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// checkOwner returns why a file or directory may have been made by others than this user and root.
func checkOwner(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	return nil
}

// checkMode returns why others can write to a file or directory.
func checkMode(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("others than its owner can write to it (chmod go-w)")
	}
	return nil
}
