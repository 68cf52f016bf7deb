//go:build unix

package symindex

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// checkOwn returns why others than this user and root can change what is in a directory.
func checkOwn(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return errors.New("the directory belongs to another user")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("others than its owner can write to the directory (chmod go-w)")
	}
	return nil
}
