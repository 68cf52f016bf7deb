package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Caches has the cache folders of a run. With MakeIndex or MakeDownloads, Folders makes a missing
// folder, since a folder made later is not writable.
type Caches struct {
	Index, Downloads         string // empty: none
	MakeIndex, MakeDownloads bool
	Servers                  bool // files are downloaded
}

// Folders returns the cache folders that exist. It adds the folder for temporary files if there is
// no index folder, or if files are downloaded.
func (c *Caches) Folders() (dirs []string) {
	usable := func(dir string, makes bool) bool {
		if dir == "" {
			return false
		}
		if makes {
			MakeFolder(dir) // if this fails, nothing is written there
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
		dirs = append(dirs, dir)
		return true
	}
	kept := usable(c.Index, c.MakeIndex)
	usable(c.Downloads, c.MakeDownloads)
	if c.Servers || !kept {
		dirs = append(dirs, os.TempDir())
	}
	return dirs
}

// MakeFolder makes dir for this user alone. It never makes the user's home folder.
func MakeFolder(dir string) {
	if home := os.Getenv("HOME"); home != "" && strings.HasPrefix(dir, home+string(os.PathSeparator)) {
		if _, err := os.Stat(home); err != nil {
			return
		}
	}
	os.MkdirAll(dir, 0o700)
}

// FolderOf returns the folder of the file at path, after following links. A file that replaces it
// is made there.
func FolderOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Dir(path)
}

// OfOtherProcess reports whether path leads through the files of another process, such as
// /proc/1234/root, directly or by symbolic links. path may be a pattern.
func OfOtherProcess(path string) bool {
	if path == "" || path == "-" {
		return false
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for range maxLinks {
		if namesProcess(path) {
			return true
		}
		next, ok := followLink(path)
		if !ok {
			return false
		}
		path = next
	}
	return false
}

const maxLinks = 40 // in one path, as in the kernel

// namesProcess reports whether path is in the folder of another process in /proc, or is that
// folder. It returns true for a pattern that may match such a path.
func namesProcess(path string) bool {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok || rest == "" {
		return false
	}
	name, _, _ := strings.Cut(rest, "/")
	return strings.ContainsRune("0123456789*?[", rune(name[0])) && name != strconv.Itoa(os.Getpid())
}

// followLink replaces the first symbolic link in path, which is absolute, by its target. It returns
// false if path has no link.
func followLink(path string) (string, bool) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != os.PathSeparator {
			continue
		}
		target, err := os.Readlink(path[:end])
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:end]), target)
		}
		return filepath.Join(target, path[end:]), true
	}
	return path, false
}
