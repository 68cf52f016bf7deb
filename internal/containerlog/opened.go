package containerlog

import (
	"io/fs"
	"os"
)

// mode is the file mode that container runtimes use.
const mode = fs.FileMode(0o640)

// An opened is an open file, with its state when it was opened.
type opened struct {
	*os.File
	info fs.FileInfo
}

// open opens the file at path for appending, and ends its last line.
func open(path string) (*opened, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		err = endLine(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &opened{f, info}, nil
}

// endLine appends a line end to a file of size bytes, unless its last byte is one.
func endLine(f *os.File, size int64) error {
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err := f.Write([]byte{'\n'})
	return err
}

// isAt reports whether path leads to o's file. It returns true for pipes and devices, which are not
// reopened.
func (o *opened) isAt(path string) bool {
	if !o.info.Mode().IsRegular() {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, o.info)
}
