package filter

import (
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/internal/judge"
)

const maxFolders = 128 // folders searched for a name

// systemFolders are the folders in which distributions install programs and libraries.
var systemFolders = []string{
	"/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin",
	"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/libexec",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/usr/lib/arm-linux-gnueabihf", "/usr/lib/riscv64-linux-gnu", "/usr/lib/powerpc64le-linux-gnu",
}

// byName returns the files called name in Dialects.Folders and the system's folders. The caller
// must prove which of them ran.
func (t *tracer) byName(name string) (found []*judge.Image) {
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return nil
	}
	if t.opt.NoPaths {
		return nil
	}
	folders := append(t.opt.Folders[:len(t.opt.Folders):len(t.opt.Folders)], systemFolders...)
	seen := make(map[string]bool)
	for _, folder := range folders[:min(len(folders), maxFolders)] {
		path := filepath.Join(folder, name)
		if !filepath.IsAbs(path) || seen[path] {
			continue
		}
		seen[path] = true
		if !isFile(t, path) {
			continue // a missing file does not count towards maxImages: most folders have none
		}
		if m := t.imageAt(path); m.Err == nil {
			found = append(found, m)
		}
	}
	return found
}
