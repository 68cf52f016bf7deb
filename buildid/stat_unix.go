//go:build unix

package buildid

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow keeps an open from following a link at the end of the path.
const noFollow = syscall.O_NOFOLLOW

// inode returns the number of the file that info is about.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// ours reports whether nobody else may change what info is about.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// isLoop reports whether err is about links that lead to each other.
func isLoop(err error) bool { return errors.Is(err, syscall.ELOOP) }
