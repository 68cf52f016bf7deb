package filter

import (
	"bufio"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
)

const (
	maxReleases   = 8       // kernels whose module folders are remembered
	maxModuleDirs = 1 << 16 // entries read from a module folder; Debian's kernel has 4,500
	maxDepFile    = 8 << 20 // bytes read of modules.dep; Debian's has 500,000
)

type kernelModules struct {
	// paths of module files, by the kernel's release and the kernel's name for the module
	releases map[string]map[string][]string
}

// moduleFolders returns the module folders of a kernel, folders of debug information first.
func moduleFolders(release string) []string {
	return []string{"/usr/lib/debug/lib/modules/" + release, "/lib/modules/" + release}
}

// places returns the paths of a kernel module's files on the machine that wrote the log. The
// argument here is a function that translates such a path to a path on this machine.
func (k *kernelModules) places(here func(string) string, module, release string) []string {
	all, known := k.releases[release]
	if !known {
		all = make(map[string][]string)
		for _, folder := range moduleFolders(release) {
			if !listModules(all, here, folder) {
				walkModules(all, here, folder)
			}
		}
		if len(k.releases) >= maxReleases {
			clear(k.releases)
		}
		if k.releases == nil {
			k.releases = make(map[string]map[string][]string)
		}
		if len(all) > 0 {
			k.releases[release] = all
		}
	}
	return all[moduleName(module)]
}

// listModules adds the files that folder's modules.dep lists to the map all. It reports whether
// modules.dep lists any file.
func listModules(all map[string][]string, here func(string) string, folder string) bool {
	f, err := buildid.OpenRegular(here(path.Join(folder, "modules.dep")), "modules.dep")
	if err != nil {
		return false
	}
	defer f.Close()
	found := false
	lines := bufio.NewScanner(io.NewSectionReader(f, 0, min(f.Size(), maxDepFile)))
	for lines.Scan() && len(all) < maxModuleDirs {
		name, _, ok := strings.Cut(lines.Text(), ":")
		if ok && filepath.IsLocal(name) {
			found = true
			addModule(all, path.Join(folder, name))
		}
	}
	return found
}

func walkModules(all map[string][]string, here func(string) string, folder string) {
	root := here(folder)
	left := maxModuleDirs
	filepath.WalkDir(root, func(place string, entry fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err == nil && entry.Type().IsRegular() && strings.Contains(entry.Name(), ".ko") {
			if rel, err := filepath.Rel(root, place); err == nil {
				addModule(all, path.Join(folder, filepath.ToSlash(rel)))
			}
		}
		return nil
	})
}

func addModule(all map[string][]string, place string) {
	name := moduleName(path.Base(place))
	all[name] = append(all[name], place)
}

// isForKernel reports whether the operator's file g is for a kernel or kernel module. If g has no
// name, its file's name decides: vmlinux-6.1.0 or arm.vmlinux is for the kernel itself,
// snd-pcm.ko.xz for snd_pcm.
func (g *Image) isForKernel(module string) bool {
	if g.Name != "" {
		return moduleName(g.Name) == moduleName(module)
	}
	base := path.Base(g.Path)
	if module == dialect.KernelImage {
		return strings.Contains(base, dialect.KernelImage)
	}
	return moduleName(base) == moduleName(module)
}

// moduleName returns the kernel's name for the module in a file: without file suffixes, and with
// underscores.
func moduleName(file string) string {
	name, _, _ := strings.Cut(file, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
