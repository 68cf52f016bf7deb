package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/newfile"
	"github.com/symfilter/symfilter/valgrind"
)

func (o output) isFolder() bool { return strings.HasSuffix(o.file, "/") }

// An outputFolder is a folder that gets a file for each process. A file appears under its name only
// when it is complete.
type outputFolder struct {
	path  string
	root  *os.Root
	names map[string]int // number of files of this run, by beginning of the name
	ended func() bool    // reports whether the run was ended before the inputs were read
}

// folderSuffix ends the names of files in output folders. Valgrind's own reports have other names.
const folderSuffix = ".named.xml"

// openFolder makes the folder of an output, and removes the files of an earlier run.
func openFolder(path string) (*outputFolder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(escapeGlob(path), "*"+folderSuffix))
	for _, name := range old {
		if err == nil {
			err = root.Remove(filepath.Base(name))
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &outputFolder{path: path, root: root, names: make(map[string]int), ended: func() bool { return false }}, nil
}

// escapeGlob returns a pattern that matches only path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func (f *outputFolder) begin() (valgrind.Document, error) {
	whole, err := newfile.Create(f.root, ".symfilter.")
	if err == nil {
		err = whole.Chmod(defaultMode())
	}
	if err != nil {
		return nil, &outputError{f.path, err}
	}
	return &folderFile{whole, f}, nil
}

type folderFile struct {
	whole  *newfile.File
	folder *outputFolder
}

func (d *folderFile) Write(p []byte) (int, error) {
	n, err := d.whole.Write(p)
	if err != nil {
		err = &outputError{d.folder.path, err}
	}
	return n, err
}

// End names the file after the PID, and appends a number if an earlier process had the same PID. If
// the run was ended by a signal, End discards the file.
func (d *folderFile) End(pid string) error {
	defer d.whole.Discard()
	if d.folder.ended() {
		return nil
	}
	name := "process"
	if n, err := strconv.ParseUint(pid, 10, 32); err == nil {
		name = strconv.FormatUint(n, 10)
	}
	d.folder.names[name]++
	if n := d.folder.names[name]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	if err := d.whole.Publish(name + folderSuffix); err != nil {
		return &outputError{d.folder.path + name + folderSuffix, err}
	}
	return nil
}

// end closes the folder. f may be nil.
func (f *outputFolder) end() {
	if f != nil {
		f.root.Close()
	}
}
