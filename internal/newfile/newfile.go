// Package newfile writes files that nobody sees before they are whole, and that leave nothing if
// the process is killed: if the file system allows it, a file has no name until it is published.
package newfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"time"
)

// A File is open for writing and reading, with mode 0600, and not yet published. End it with
// Publish or Discard. It is not for several goroutines.
type File struct {
	*os.File
	root   *os.Root // of the caller, who closes it after the File has ended
	prefix string   // of temporary names, below root
	temp   string   // the name it has; empty: none
}

// Create makes a file in the directory of prefix, a path below root such as "dir/new-". If the file
// must have a name, the name is prefix and six letters or digits, and stays if the process is
// killed.
func Create(root *os.Root, prefix string) (*File, error) {
	if f := unnamed(root, prefix); f != nil {
		return f, nil
	}
	return named(root, prefix)
}

// named is Create with a name.
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

const maxTries = 100 // names that are taken, one after the other; there are 62^6

// randomName returns six letters or digits, as mkstemp makes them.
func randomName() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b [6]byte
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b[:])
}

// Publish makes the file durable and gives it its name, a path below root in the directory of
// prefix. It replaces a file of that name. The file stays open. After an error it has at most a
// temporary name, and Publish may be called again.
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

// syncDir makes the name durable, as far as the system can: without it, a power failure costs the
// file and tears none.
func (f *File) syncDir(name string) {
	if d, err := f.root.Open(path.Dir(name)); err == nil {
		d.Sync()
		d.Close()
	}
}

// Chtimes sets the times of the file; a zero time stays as it is.
func (f *File) Chtimes(accessed, modified time.Time) error {
	if f.temp != "" {
		return f.root.Chtimes(f.temp, accessed, modified)
	}
	return os.Chtimes(f.place(), accessed, modified)
}

// Discard closes the file and removes its temporary name, if it has one. What was published stays.
func (f *File) Discard() {
	f.Close()
	if f.temp != "" {
		f.root.Remove(f.temp)
		f.temp = ""
	}
}
