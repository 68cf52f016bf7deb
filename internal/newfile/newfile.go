// Package newfile writes files that get their name only when they are complete. A killed process
// leaves no file behind, if the file system supports files without a name.
package newfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A File is an unpublished file, open for reading and writing, with mode 0600. It must be ended
// with Publish and then Close, or with Discard. A File is not safe for concurrent use.
type File struct {
	*os.File
	root   *os.Root // the caller's, closed after the File
	prefix string   // prefix of temporary names, below root
	temp   string   // temporary name; empty: none
}

// Create makes a file in the directory of prefix, a path below root such as "dir/new-". On file
// systems without unnamed files, the file has a temporary name: prefix and six letters or digits.
// That name remains if the process is killed.
func Create(root *os.Root, prefix string) (*File, error) {
	if f := unnamed(root, prefix); f != nil {
		return f, nil
	}
	return named(root, prefix)
}

// named is Create for a file with a temporary name.
func named(root *os.Root, prefix string) (*File, error) {
	for try := 0; ; try++ {
		temp := prefix + randomName()
		f, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return &File{f, root, prefix, temp}, nil
		}
		if !errors.Is(err, fs.ErrExist) || try >= maxTries {
			return nil, err
		}
	}
}

const maxTries = 100 // tries to find a free name, among 62^6

// randomName returns six letters or digits, as mkstemp makes them.
func randomName() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b [6]byte
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b[:])
}

// Publish syncs the file and gives it its name, a path below root in the directory of prefix. It
// replaces a file of that name. The file stays open. After an error, it has at most a temporary
// name, and Publish may be called again.
func (f *File) Publish(name string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if f.temp == "" {
		err := f.link(name)
		if errors.Is(err, fs.ErrExist) {
			for try := 0; errors.Is(err, fs.ErrExist) && try < maxTries; try++ {
				temp := f.prefix + randomName()
				if err = f.link(temp); err == nil {
					f.temp = temp
				}
			}
		} else if err == nil {
			f.syncDir(name)
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := f.root.Rename(f.temp, name); err != nil {
		return err
	}
	f.temp = ""
	f.syncDir(name)
	return nil
}

// syncDir makes the name durable, if the system can. Otherwise a power failure may remove the file,
// but not damage it.
func (f *File) syncDir(name string) {
	if d, err := f.root.Open(path.Dir(name)); err == nil {
		d.Sync()
		d.Close()
	}
}

// Chtimes sets the times of the file. A zero time leaves that time unchanged.
func (f *File) Chtimes(accessed, modified time.Time) error {
	if f.temp != "" {
		return f.root.Chtimes(f.temp, accessed, modified)
	}
	return os.Chtimes(f.place(), accessed, modified)
}

// Discard closes the file, and removes its temporary name, if any. A published file stays.
func (f *File) Discard() {
	f.Close()
	if f.temp != "" {
		f.root.Remove(f.temp)
		f.temp = ""
	}
}

// Tidy prepares the removal of the least recently used files from dir. It removes temporary files,
// whose names begin with prefix, if they were last written more than stale ago: their processes
// were probably killed. It returns the files whose names end with suffix, the least recently
// modified first, or none if dir cannot be read.
func Tidy(dir, prefix, suffix string, stale time.Duration) (files []fs.FileInfo) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasPrefix(e.Name(), prefix):
			if time.Since(info.ModTime()) > stale {
				os.Remove(filepath.Join(dir, e.Name()))
			}
		case strings.HasSuffix(e.Name(), suffix):
			files = append(files, info)
		}
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return files
}
