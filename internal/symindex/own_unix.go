//go:build unix

package symindex

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

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
