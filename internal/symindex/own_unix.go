//go:build unix

package symindex

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags are for files that others may have put in the place of an index: do not follow a link,
// and do not wait for the other end of a FIFO.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// checkOwn returns an error if users other than this one and root can change the contents of a
// directory.
func checkOwn(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return errors.New("the directory belongs to another user")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("the directory is writable by others than its owner (chmod go-w)")
	}
	return nil
}
