//go:build unix

package buildid

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes an open fail if the last part of the path is a symbolic link.
const noFollow = syscall.O_NOFOLLOW

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// ours reports whether info's file or folder belongs to the user and nobody else can write to it.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

func isLoop(err error) bool { return errors.Is(err, syscall.ELOOP) }
