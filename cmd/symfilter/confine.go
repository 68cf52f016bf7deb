package main

import (
	"slices"
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/sandbox"
)

// confine gives up the rights that this run does not need. It must be called before the run reads
// anything of unknown origin. files are the paths on the command line; an empty path is ignored. If
// makes is set, confine first makes the missing folders that the run may fill, since a folder made
// later would not be writable.
func (c *config) confine(diag *diagnostics, files []string, makes bool) (s sandbox.State) {
	if c.noSandbox {
		s.Missing = []string{"--no-sandbox"}
	} else {
		s = sandbox.Apply(sandbox.Policy{
			Write:          c.writable(makes),
			Devices:        c.deviceFolders(files),
			Network:        len(c.urls) > 0,
			OtherProcesses: c.child != 0 || slices.ContainsFunc(slices.Concat(c.paths(), files), sandbox.OfOtherProcess),
			Child:          c.child,
		})
	}
	if c.verbose {
		diag.printf("sandbox: %s", s)
	}
	return s
}

func (c *config) writable(makes bool) (dirs []string) {
	servers := len(c.urls) > 0
	caches := sandbox.Caches{Index: symfilter.UserCacheDir(), MakeIndex: makes && c.output != outputMarkup}
	caches.Downloads, caches.MakeDownloads, caches.Servers = c.downloads, makes && servers, servers
	dirs = caches.Folders()
	for _, file := range c.written() {
		if strings.HasSuffix(file.path, "/") {
			dirs = append(dirs, file.path)
			continue
		}
		dirs = append(dirs, sandbox.FolderOf(file.path))
	}
	return dirs
}

// paths returns the paths in flags that the run opens after it is confined.
func (c *config) paths() (paths []string) {
	for _, p := range c.search().Places() {
		paths = append(paths, p.Path)
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
