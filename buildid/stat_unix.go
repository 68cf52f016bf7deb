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

// inode returns the inode number of the file that info describes.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// ours reports whether the file or folder belongs to the user and nobody else can write to it.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// isLoop reports whether err is about symbolic links that form a loop.
func isLoop(err error) bool { return errors.Is(err, syscall.ELOOP) }
