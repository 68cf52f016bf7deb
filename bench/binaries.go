//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

// The binaries, files in the folder bins: C with DWARF 5 and .debug_aranges (630 MB), C++17 with
// deep inlining (460 MB).
const (
	vmlinux = "vmlinux"
	radosgw = "rgw.debug"
	zlibbed = "rgw.z.debug" // radosgw with compressed sections, as Debian ships it
)

// The debug trees, which lead from build IDs to files.
const (
	plainTree = "dbg"
	zlibTree  = "dbgz"
)

// binaries is the folder with all files of the benchmark.
type binaries struct{ dir string }

func openBinaries() (*binaries, error) {
	dir := os.Getenv("BENCH_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(cache, "symfilter-bench")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &binaries{dir}, os.MkdirAll(filepath.Join(dir, "logs"), 0o755)
}

func (b *binaries) bin(name string) string  { return filepath.Join(b.dir, "bins", name) }
func (b *binaries) tree(name string) string { return filepath.Join(b.dir, name) }

func (b *binaries) code(name string, distinct int) (*code, error) {
	return readCode(b.bin(name), distinct)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func (b *binaries) logPath(w workload) string {
	name := w.name
	for _, suffix := range []string{", indexed", ", zlib", ", pipes", ", vmlinux's addresses"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return filepath.Join(b.dir, "logs", "bench-"+notInNames.ReplaceAllString(strings.ToLower(name), "-")+".log")
}

// logOf returns the path of the workload's log. If it is missing, another process makes it: a
// command that is measured inherits the peak memory of the process that starts it.
func (b *binaries) logOf(w workload) (string, error) {
	if w.log == nil {
		return os.DevNull, nil
	}
	path := b.logPath(w)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "writing:", path)
	cmd := exec.Command(self, "-generate", w.name)
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
}

// fetch downloads the binaries and makes their trees, if they are missing: 640 MB of packages, 1.3
// GB unpacked.
func (b *binaries) fetch() error {
	script := `set -eu
mkdir -p dl bins && cd dl
kernel=$(apt-cache depends linux-image-amd64-dbg | awk '/Depends:/ { print $2; exit }')
apt-get download "$kernel" radosgw-dbg
mkdir -p kernel radosgw
dpkg-deb --fsys-tarfile linux-image-*-dbg_*.deb | tar -x -C kernel --wildcards './usr/lib/debug/boot/vmlinux*'
dpkg-deb -x radosgw-dbg_*.deb radosgw
mv kernel/usr/lib/debug/boot/vmlinux-* ../bins/vmlinux
biggest=$(find radosgw -name '*.debug' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
mv "$biggest" ../bins/rgw.z.debug
llvm-objcopy-19 --decompress-debug-sections ../bins/rgw.z.debug ../bins/rgw.debug
`
	if _, err := os.Stat(b.bin(radosgw)); errors.Is(err, fs.ErrNotExist) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("the binaries: %w", err)
		}
	}
	for tree, names := range map[string][]string{plainTree: {vmlinux, radosgw}, zlibTree: {zlibbed}} {
		for _, name := range names {
			if err := link(b.tree(tree), b.bin(name)); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// link adds a link to file, an absolute path, to a debug tree.
func link(tree, file string) error {
	id, err := buildID(file)
	if err != nil {
		return err
	}
	name, err := inTree(tree, id)
	if err != nil {
		return err
	}
	return os.Symlink(file, name)
}

// inTree returns the name of a build ID's debug file in a tree, and makes the folder for it.
func inTree(tree, id string) (string, error) {
	dir := filepath.Join(tree, ".build-id", id[:2])
	return filepath.Join(dir, id[2:]+".debug"), os.MkdirAll(dir, 0o755)
}

// buildID returns the build ID of a file in hex.
func buildID(path string) (string, error) {
	f, err := buildid.OpenRegular(path, "")
	if err != nil {
		return "", err
	}
	defer f.Close()
	id, err := buildid.Read(f, f.Size())
	return id.String(), err
}
