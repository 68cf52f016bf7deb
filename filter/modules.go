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
	maxReleases   = 8       // kernels whose folders of modules are remembered
	maxModuleDirs = 1 << 16 // entries of a folder of modules that are read; Debian's kernel has 4,500
	maxDepFile    = 8 << 20 // bytes of modules.dep that are read; Debian's has 500,000
)

// kernelModules are the paths of the modules of kernels.
type kernelModules struct {
	releases map[string]map[string][]string // paths by the release and the name that the kernel gives to the module
}

// moduleFolders returns the folders of the modules of a kernel, those with debug information first.
func moduleFolders(release string) []string {
	return []string{"/usr/lib/debug/lib/modules/" + release, "/lib/modules/" + release}
}

// places returns the paths of the files of a module, as the log would name them. here returns the
// path on this machine for such a path.
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

// listModules adds the modules that modules.dep in folder lists, with their debug files, and
// reports whether there is such a list.
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

// walkModules adds the modules below folder.
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

// addModule adds the path of a module.
func addModule(all map[string][]string, place string) {
	name := moduleName(path.Base(place))
	all[name] = append(all[name], place)
}

// isForKernel reports whether the operator has named g for a module of a kernel. If g has no name,
// the name of its file decides: vmlinux-6.1.0 or arm.vmlinux is for the kernel itself, snd-pcm.ko.xz
// for snd_pcm.
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

// moduleName returns the name that a kernel gives to the module in a file: without the suffixes of
// the file, and with underscores.
func moduleName(file string) string {
	name, _, _ := strings.Cut(file, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
