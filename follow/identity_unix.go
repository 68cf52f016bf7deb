//go:build unix

package follow

import (
	"io/fs"
	"os"
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
