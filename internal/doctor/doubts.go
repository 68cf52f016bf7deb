package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Doubts returns the places in a configuration that cannot provide debug files. Each has a sentence
// with its path and the reason. The Flag of such a Place is its key in the configuration. Trees
// must have folders of build IDs. Other places need only exist.
func (s *Search) Doubts() iter.Seq2[Place, string] {
	return func(yield func(Place, string) bool) {
		for _, list := range []struct {
			key   string
			paths []string
			trees bool
		}{
			{"symbol_paths", s.SymbolPaths, false}, {"ids_files", s.IDsFiles, false},
			{"build_id_directories", s.BuildIDDirs, true}, {"debug_file_directories", s.DebugDirs, true},
		} {
			for _, path := range list.paths {
				if text := doubt(path, list.trees); text != "" && !yield(Place{list.key, path}, text) {
					return
				}
			}
		}
	}
}

// doubt returns why path cannot provide debug files, or "".
func doubt(path string, tree bool) string {
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path + " does not exist"
	case err != nil:
		return err.Error()
	case tree && !isTree(path):
		return fmt.Sprintf("%s has no .build-id folder; if it holds programs or debug files, list it in symbol_paths instead", path)
	}
	return ""
}

// isTree reports whether dir may be a tree of build IDs, in a layout of buildid.Tree. It returns
// true if dir cannot be read.
func isTree(dir string) bool {
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

// isDir reports whether path leads to a folder. A file may also have a name of two hex digits, such
// as the program dd.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
