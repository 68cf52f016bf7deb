package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/sandbox"
)

// confine gives up the rights that this run does not need. It must be called before the run reads
// anything of unknown origin. files are the paths on the command line that belong to no flag. If
// makes is set, folders that the run may fill are made first: a folder that is made later is not
// writable.
func (c *config) confine(diag *diagnostics, files []string, makes bool) (s sandbox.State) {
	if c.noSandbox {
		s.Missing = []string{"--no-sandbox"}
	} else {
		s = sandbox.Apply(sandbox.Policy{
			Write:          c.writable(makes),
			Devices:        c.deviceFolders(files),
			Network:        len(c.urls) > 0,
			OtherProcesses: slices.ContainsFunc(slices.Concat(c.paths(), files), ofOtherProcess),
		})
	}
	if c.verbose {
		diag.printf("sandbox: %s", s)
	}
	return s
}

// writable returns the folders that the run may write to.
func (c *config) writable(makes bool) (dirs []string) {
	servers := len(c.urls) > 0
	usable := func(dir string, mayMake bool) bool {
		if dir == "" {
			return false
		}
		if makes && mayMake {
			makeFolder(dir) // if this fails, nothing is written there
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
		dirs = append(dirs, dir)
		return true
	}
	kept := usable(symfilter.UserCacheDir(), c.output != outputMarkup)
	usable(c.downloads, servers)
	if servers || !kept { // temporary files, if no cache takes them
		dirs = append(dirs, os.TempDir())
	}
	for _, file := range c.written() {
		if strings.HasSuffix(file.path, "/") {
			dirs = append(dirs, file.path)
			continue
		}
		dirs = append(dirs, folderOf(file.path))
	}
	return dirs
}

// makeFolder makes dir for this user alone, but never the user's home folder.
func makeFolder(dir string) {
	if home := os.Getenv("HOME"); home != "" && strings.HasPrefix(dir, home+string(os.PathSeparator)) {
		if _, err := os.Stat(home); err != nil {
			return
		}
	}
	os.MkdirAll(dir, 0o700)
}

// folderOf returns the folder in which the file at path is replaced; links are followed.
func folderOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Dir(path)
}

// paths returns all paths that flags name and the run opens after it was confined.
func (c *config) paths() (paths []string) {
	for _, p := range c.places() {
		paths = append(paths, p.path)
	}
	for _, s := range c.prefixes {
		_, to, _ := strings.Cut(s, "=")
		paths = append(paths, to)
	}
	paths = append(paths, c.source.roots...)
	for _, file := range c.written() {
		paths = append(paths, file.path)
	}
	return paths
}

// ofOtherProcess reports whether path, which may be a pattern, leads through the files of another
// process, such as /proc/1234/root, itself or by symbolic links.
func ofOtherProcess(path string) bool {
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

const maxLinks = 40 // in one path, as for the kernel

// namesProcess reports whether path is below the folder of another process in /proc.
func namesProcess(path string) bool {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok || rest == "" {
		return false
	}
	name, _, _ := strings.Cut(rest, "/")
	return strings.ContainsRune("0123456789*?[", rune(name[0])) && name != strconv.Itoa(os.Getpid())
}

// followLink replaces the first symbolic link in path, which is absolute, by its target. It reports
// whether there is a link.
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
