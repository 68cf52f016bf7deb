package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// SystemURLs is the folder with the debug file servers of the distribution.
const SystemURLs = "/etc/debuginfod"

// dpkgLists is the folder of dpkg's lists. PACKAGE.list or PACKAGE:ARCHITECTURE.list has the paths
// of a package's files, one on each line.
const dpkgLists = "/var/lib/dpkg/info"

const (
	maxPackages  = 8192     // lists to read; a full desktop has 5,000
	maxListBytes = 64 << 20 // bytes of the lists; 10 KiB each are usual
	maxRemedied  = 4        // modules for which packages are searched
	// opened files with a module's name; many packages have a file of the same name, such as README
	maxOpened = 64
)

// A remedier finds remedies for unresolved addresses. It reads files, but makes no requests.
type remedier struct {
	s      *Search
	module func(id buildid.ID, name string) symbolize.Report
	lists  string // folder of dpkg's lists; empty: not read
	urls   string // folder with the distribution's servers

	roots []root                // contents of the symbol paths; nil: unknown
	asked func(buildid.ID) bool // reports whether a module has the ID
	taken map[string]bool       // files of --image that were used as modules
}

// remedier returns a remedier for a run with these counts. With quick, it does not read the lists
// of packages.
func (s *Search) remedier(sum Counts, quick bool) *remedier {
	sym := s.Opened.Symbolizer
	r := &remedier{s: s, module: sym.Report, lists: dpkgLists, urls: SystemURLs, taken: sum.taken}
	if s.NoPaths || quick {
		r.lists = ""
	}
	r.asked = func(id buildid.ID) bool {
		return slices.ContainsFunc(sym.Reports(), func(r symbolize.Report) bool { return r.ID == id })
	}
	if s.Opened.SymbolPath != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		// With a canceled context, rootsOf walks no paths: it returns only the results of an
		// earlier walk. Without these results, useless returns fewer places.
		r.roots, _ = rootsOf(ended, s.Opened.SymbolPath)
	}
	return r
}

// remedies returns remedies for modules, as parts of a sentence. modules must be sorted.
func (r *remedier) remedies(modules []symbolize.Unresolved) (all []string) {
	var unused []string
	if len(modules) > 0 {
		unused = r.unusedImages(modules)
		all = append(r.s.useless(r.roots, r.asked), unused...)
	}
	n := r.needsOf(modules)
	all = slices.Concat(all, n.misfiled, n.imageFlags(), r.installs(n), n.flags(), r.servers(n))
	if len(all) == 0 && len(n.without) > 0 {
		all = append(all, noRemedy)
	}
	if n.reason != "" && len(unused) == 0 {
		all = append(all, n.reason)
	}
	return all
}

// A needs lists the files, flags and packages that would resolve modules.
type needs struct {
	without  []symbolize.Unresolved // modules with a build ID, without debug information
	misfiled []string               // unusable files at the paths of debug files, with the reasons
	// packages of debug files for programs that name their own package
	packages []string
	images   []string // values of --image

	pending, elsewhere, kernel bool
	reason                     string // reason for the module with the most addresses, with advice
}

// needsOf returns the files, flags and packages that would resolve modules. modules must be sorted,
// the module with the most addresses first.
func (r *remedier) needsOf(modules []symbolize.Unresolved) (n needs) {
	for _, u := range modules {
		known := r.module(u.ID, u.Name)
		switch {
		case errors.Is(u.Err, symbolize.ErrPending):
			n.pending = true
		case errors.Is(u.Err, report.ErrNoFile):
			n.elsewhere = true
		case isKernel(u) && known.Path == "" && len(r.s.Images) == 0:
			n.kernel = true
		case u.Candidate != "":
			n.images = append(n.images, "--image "+imageWord(u))
		case n.reason == "" && isAdvice(u.Err):
			n.reason = shortName(u) + ": " + u.Err.Error()
		}
		if known.Holds == symbolize.DebugInfo || u.ID.IsZero() {
			continue
		}
		n.without = append(n.without, u)
		if text := r.s.misfiled(&known); text != "" && len(n.misfiled) < maxRemedied {
			n.misfiled = append(n.misfiled, text)
		}
		if p := debugPackage(known.Package.Type, known.Package.Name); p != "" {
			n.packages = append(n.packages, p)
		}
	}
	return n
}

// imageFlags returns --image flags for the files that may have run.
func (n *needs) imageFlags() []string {
	switch images := n.images[:min(len(n.images), maxRemedied)]; len(images) {
	case 0:
		return nil
	case 1:
		return []string{"add " + images[0] + " if that file ran"}
	default:
		return []string{"add " + strings.Join(images, " ") + " if these files ran"}
	}
}

// flags returns advice about the flags, other than --image, that would help.
func (n *needs) flags() (all []string) {
	if n.pending {
		all = append(all, "--wait "+longWait+" waits longer for debug files")
	}
	if n.elsewhere {
		all = append(all, "--sysroot names a folder with the files of another machine")
	}
	if n.kernel {
		all = append(all, "--image vmlinux names the kernel's file, --image MODULE=FILE a module's")
	}
	return all
}

// installs returns remedies with packages to install.
func (r *remedier) installs(n needs) []string {
	packages := n.packages
	if installed, err := installers(r.lists, n.without); err == nil {
		packages = append(packages, installed...)
	}
	// packages install debug files in the system's folder, which NoDefaultDebugDirs leaves out
	if len(packages) == 0 || r.s.NoDefaultDebugDirs {
		return nil
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	return []string{"install " + strings.Join(packages[:min(len(packages), maxRemedied)], " ")}
}

// servers returns servers that may have the debug files, and how to use them.
func (r *remedier) servers(n needs) (all []string) {
	if len(n.without) == 0 {
		return nil
	}
	if len(r.s.URLs) == 0 && r.s.NoServers == "" {
		urls, err := debuginfod.SystemURLs(r.urls)
		urls = slices.DeleteFunc(urls, func(word string) bool { return !strings.HasPrefix(word, "http") }) // ima: tags
		if err == nil && len(urls) > 0 {
			all = append(all, "--debuginfod asks "+strings.Join(urls[:min(len(urls), maxRemedied)], " "))
		}
	}
	if r.s.Opened == nil || r.s.Opened.Servers == nil {
		return all
	}
	if n := stateOf(r.s.Opened.Servers).Remembered(); n > 0 {
		all = append(all, fmt.Sprintf("servers were not asked again for %s that they recently did not have; symfilter doctor LOG asks again",
			wording.Count(int64(n), "build ID", "build IDs")))
	}
	return all
}

// isKernel reports whether a module is the kernel, or a part of a kernel without files on this
// machine.
func isKernel(u symbolize.Unresolved) bool {
	return u.Name == dialect.KernelImage || errors.Is(u.Err, judge.ErrKernel)
}

// isAdvice reports whether a reason has advice, after a semicolon.
func isAdvice(reason error) bool {
	return isReason(reason) && strings.Contains(reason.Error(), "; ")
}

// noRemedy is the advice if nothing more precise is known.
const noRemedy = "--debug-file-directory and --symbol-path name folders of debug files"

// longWait is a recommended --wait: the default for files, longer than the default for pipes.
const longWait = "90s"

// debugPackage returns the usual name of the debug package of a distribution's package, or "".
func debugPackage(kind, name string) string {
	switch {
	case name == "":
	// built before -dbgsym packages existed
	case kind == "deb" && (name == "libc6" || strings.HasPrefix(name, "linux-image-")):
		return name + "-dbg"
	case kind == "deb":
		return name + "-dbgsym"
	case kind == "rpm":
		return name + "-debuginfo"
	}
	return ""
}

// installers returns the debug packages of installed Debian packages with the build IDs of the
// first modules. It searches dpkg's lists for files with the names of these modules.
func installers(lists string, modules []symbolize.Unresolved) (packages []string, err error) {
	var wanted [][]byte
	var ids []buildid.ID // zero: found
	opened := 0
	for _, u := range modules {
		if name := filepath.Base(u.Name); u.Name != "" && !u.ID.IsZero() && len(wanted) < maxRemedied && !strings.Contains(name, "\n") {
			wanted, ids = append(wanted, []byte("/"+name+"\n")), append(ids, u.ID)
		}
	}
	if len(wanted) == 0 || lists == "" {
		return nil, nil
	}
	dir, err := os.Open(lists)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(8 * maxPackages) // some eight files for each package
	if err != nil && err != io.EOF {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".list") })
	left := int64(maxListBytes)
	buffer := make([]byte, listBuffer)
	for _, name := range names[:min(len(names), maxPackages)] {
		left = eachBlock(filepath.Join(lists, name), left, buffer, func(text []byte) {
			for i, base := range wanted {
				for path := range pathsOf(text, base) {
					if opened == maxOpened*len(wanted) || ids[i].IsZero() {
						break
					}
					opened++
					if f, err := buildid.Open(path, "", ids[i]); err == nil {
						f.Close()
						owner, _, _ := strings.Cut(strings.TrimSuffix(name, ".list"), ":")
						packages = append(packages, debugPackage("deb", owner))
						ids[i] = buildid.ID{}
					}
				}
			}
		})
	}
	return packages, nil
}

// listBuffer is the size in bytes of blocks of a list. Most lists are smaller. A line is a path, of
// at most 4,096 bytes on Linux.
const listBuffer = 64 << 10

// eachBlock calls visit with the lines of a list, as many at a time as fit into buffer. It reads at
// most left bytes, and returns the remainder of left. It stops silently at an error or a line
// longer than buffer: the other lists may still be readable.
func eachBlock(path string, left int64, buffer []byte, visit func(text []byte)) int64 {
	f, err := os.Open(path)
	if err != nil {
		return left
	}
	defer f.Close()
	kept := 0 // bytes of the unfinished line at the start of buffer
	for left > 0 && kept < len(buffer) {
		n, err := f.Read(buffer[kept:min(len(buffer), kept+int(left))])
		left -= int64(n)
		text := buffer[:kept+n]
		end := bytes.LastIndexByte(text, '\n') + 1
		visit(text[:end])
		if kept = copy(buffer, text[end:]); err != nil {
			break
		}
	}
	return left
}

// pathsOf returns the lines of text that end in base, which begins with a slash and ends with a
// line end.
func pathsOf(text, base []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			i := bytes.Index(text, base)
			if i < 0 {
				return
			}
			start, end := bytes.LastIndexByte(text[:i], '\n')+1, i+len(base)
			if !yield(string(text[start : end-1])) {
				return
			}
			text = text[end:]
		}
	}
}
