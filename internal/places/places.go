// Package places inspects the files and folders that a configuration names for debug files.
package places

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Doubt returns why no debug file will be found at path, as a sentence that begins with path, or
// an empty string. Trees must have folders of build IDs; other places need only exist.
func Doubt(path string, tree bool) string {
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path + " does not exist"
	case err != nil:
		return err.Error()
	case tree && !IsTree(path):
		return fmt.Sprintf("%s has no .build-id folder: name a folder of programs or debug files in symbol_paths", path)
	}
	return ""
}

// IsTree reports whether dir may hold debug files by build ID, in one of the layouts of
// buildid.Tree. It is true if dir cannot be read.
func IsTree(dir string) bool {
	if filepath.Base(dir) == ".build-id" {
		return true
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return false // opening a FIFO waits for its other end
	}
	f, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if name == ".build-id" || len(name) == 2 && strings.Trim(name, "0123456789abcdef") == "" && isDir(filepath.Join(dir, name)) {
				return true
			}
		}
		if err != nil {
			return err != io.EOF
		}
	}
}

// isDir tells the folders of a tree from programs such as dd.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
