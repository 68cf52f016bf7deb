//go:build unix

package follow

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/lineage"
)

func identify(_ *os.File, info fs.FileInfo) lineage.ID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return lineage.ID{}
	}
	return lineage.ID{Dev: uint64(s.Dev), Ino: uint64(s.Ino)} // the types differ between systems
}

// links returns the number of hard links to the file.
func links(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// lookAt returns the ID and the state of the file at path, with symbolic links resolved.
func lookAt(path string) (lineage.ID, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return lineage.ID{}, nil, err
	}
	return identify(nil, info), info, nil
}

// openFlags are safe for a FIFO or a terminal: opening does not wait for a writer, and acquires no
// controlling terminal.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// stateFlags open the state file for appending, without following a symbolic link.
const stateFlags = os.O_RDWR | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// planted reports whether another user may have created the file at path as a trap: everyone may
// write to the folder, only owners may remove files, and the file belongs neither to this user nor
// to the folder's owner. Linux can apply the same rule (fs.protected_regular).
func planted(path string, info fs.FileInfo) bool {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode()&fs.ModeSticky == 0 || dir.Mode()&0o002 == 0 {
		return false
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	folder, ok2 := dir.Sys().(*syscall.Stat_t)
	return ok && ok2 && int(file.Uid) != os.Geteuid() && file.Uid != folder.Uid
}

// files can be locked on this system
const locks = true

// lockFile locks f until it is closed. It returns false if another process has locked f. On a file
// system without locks, it returns true.
func lockFile(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK
}

// descriptorLimit returns how many files a process may have open, at most manyDescriptors.
func descriptorLimit() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > manyDescriptors {
		return manyDescriptors
	}
	return int64(limit.Cur)
}
