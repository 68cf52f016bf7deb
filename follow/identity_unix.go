//go:build unix

package follow

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// identify returns which file info is of; f is not used.
func identify(_ *os.File, info fs.FileInfo) fileID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(s.Dev), uint64(s.Ino)} // the types differ between systems
}

// links returns how many names the file has.
func links(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// lookAt returns what stands behind path, symbolic links resolved.
func lookAt(path string) (fileID, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, nil, err
	}
	return identify(nil, info), info, nil
}

// openFlags keep what is no regular file from holding up its opening, and from
// becoming the terminal that controls the process.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// stateFlags open the state file for records to be appended, and nothing in its place.
const stateFlags = os.O_RDWR | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// planted reports whether info, of the file at path, is of a file that another user may have put
// there for this one to use: in a folder in which all may make files but nobody removes those of
// others, it belongs to neither this user nor the owner of the folder. Linux has the same rule for
// files that are created, fs.protected_regular, where it is switched on.
func planted(path string, info fs.FileInfo) bool {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode()&fs.ModeSticky == 0 || dir.Mode()&0o002 == 0 {
		return false
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	folder, ok2 := dir.Sys().(*syscall.Stat_t)
	return ok && ok2 && int(file.Uid) != os.Geteuid() && file.Uid != folder.Uid
}

// locks says that a file can be locked.
const locks = true

// lockFile locks f until it is closed. It reports false if another has locked
// it; a file system that has no locks has none that could be in the way.
func lockFile(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK
}

// descriptorLimit returns how many files a process may have open.
func descriptorLimit() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > manyDescriptors {
		return manyDescriptors
	}
	return int64(limit.Cur)
}
