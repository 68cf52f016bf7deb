package newfile

import (
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// unnamed returns a file without a name. It returns nil on failure: the file system may have no
// such files, or /proc, which link needs, may be missing.
func unnamed(root *os.Root, prefix string) *File {
	f, err := root.OpenFile(path.Dir(prefix), os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		return nil // EOPNOTSUPP, EISDIR or EINVAL; named reports any other error
	}
	n := &File{File: f, root: root, prefix: prefix}
	if info, err := os.Stat(n.place()); err == nil {
		if own, err := f.Stat(); err == nil && os.SameFile(info, own) {
			return n
		}
	}
	f.Close()
	return nil
}

// place returns a path in /proc that leads to the open file, or "" on failure.
func (f *File) place() string {
	place := ""
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { place = "/proc/self/fd/" + strconv.Itoa(int(fd)) })
	}
	return place
}

// link gives the file a name. It fails if the name is taken.
func (f *File) link(name string) error {
	dir, err := f.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	conn, err := dir.SyscallConn()
	if err != nil {
		return err
	}
	if e := conn.Control(func(fd uintptr) {
		err = unix.Linkat(unix.AT_FDCWD, f.place(), int(fd), path.Base(name), unix.AT_SYMLINK_FOLLOW)
	}); e != nil {
		return e
	}
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.place(), New: name, Err: err}
	}
	return nil
}
