//go:build linux

package main

import (
	"context"
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

// Files in the folder bins. vmlinux is C with DWARF 5 and .debug_aranges (630 MB). radosgw is
// C++17 with deep inlining (460 MB). libjvm, of OpenJDK, is C++14. Nothing may be tuned for
// libjvm: it shows whether tuning for the other two helps other programs.
const (
	vmlinux = "vmlinux"
	radosgw = "rgw.debug"
	libjvm  = "libjvm.debug"

	// these have compressed sections, as Debian ships them
	zlibbed       = "rgw.z.debug"
	zlibbedLibjvm = "libjvm.z.debug"
)

// Names of debug trees in the benchmark's folder. A debug tree has each debug file at a path made
// of its build ID.
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

// logPath returns the path of a workload's log.
func (b *binaries) logPath(name string) string {
	file := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return filepath.Join(b.dir, "logs", "bench-"+file+".log")
}

// logOf returns the path of a workload's log. Another process writes a missing log, since
// measured commands inherit the peak memory of the process that starts them.
func (b *binaries) logOf(ctx context.Context, name string) (string, error) {
	path := b.logPath(name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "writing:", path)
	cmd := exec.CommandContext(ctx, self, "-generate", name)
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
}

// fetchKernel downloads the kernel's debug file, which is not compressed.
const fetchKernel = `set -eu
mkdir -p dl/new bins && cd dl
kernel=$(apt-cache depends linux-image-amd64-dbg | awk '/Depends:/ { print $2; exit }')
apt-get download "$kernel"
dpkg-deb --fsys-tarfile "$kernel"_*.deb | tar -x -C new --wildcards './usr/lib/debug/boot/vmlinux*'
mv new/usr/lib/debug/boot/vmlinux-* ../bins/"$1"
rm -r new
`

// fetchBiggest downloads a package of debug files, and keeps the biggest one twice: unchanged,
// and with decompressed sections. The second copy is made last, since fetch looks for it.
const fetchBiggest = `set -eu
mkdir -p dl/new bins && cd dl
apt-get download "$1"
dpkg-deb -x "$1"_*.deb new
biggest=$(find new -name '*.debug' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
mv "$biggest" ../bins/"$2"
rm -r new
llvm-objcopy-19 --decompress-debug-sections ../bins/"$2" ../bins/new
mv ../bins/new ../bins/"$3"
`

// fetch downloads the binaries and makes their trees, if they are missing: 1.5 GB of packages, 1.9
// GB unpacked.
func (b *binaries) fetch(ctx context.Context) error {
	for _, file := range []struct {
		name, script string
		args         []string
	}{
		{vmlinux, fetchKernel, []string{vmlinux}},
		{radosgw, fetchBiggest, []string{"radosgw-dbg", zlibbed, radosgw}},
		{libjvm, fetchBiggest, []string{"openjdk-17-dbg", zlibbedLibjvm, libjvm}},
	} {
		if _, err := os.Stat(b.bin(file.name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", file.script, "sh"}, file.args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
	}
	for tree, names := range map[string][]string{plainTree: {vmlinux, radosgw, libjvm}, zlibTree: {zlibbed, zlibbedLibjvm}} {
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

func buildID(path string) (string, error) {
	f, err := buildid.OpenRegular(path, "")
	if err != nil {
		return "", err
	}
	defer f.Close()
	id, err := buildid.Read(f, f.Size())
	return id.String(), err
}
