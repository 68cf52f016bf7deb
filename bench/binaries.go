//go:build linux

package main

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
	for _, suffix := range []string{", indexed", ", zlib", ", pipes"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return filepath.Join(b.dir, "logs", "bench-"+notInNames.ReplaceAllString(strings.ToLower(name), "-")+".log")
}

// logOf returns the path of the workload's log. If it is missing, another process makes it, since
// the peak memory of this process would count for the commands that it starts.
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
			if err := b.link(tree, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// link puts a binary into a debug tree.
func (b *binaries) link(tree, name string) error {
	f, err := elf.Open(b.bin(name))
	if err != nil {
		return err
	}
	defer f.Close()
	id, err := buildID(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dir := filepath.Join(b.tree(tree), ".build-id", id[:2])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err = os.Symlink(b.bin(name), filepath.Join(dir, id[2:]+".debug"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// buildID returns the GNU build ID of f in hex.
func buildID(f *elf.File) (string, error) {
	const ntGNUBuildID = 3
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		notes, err := s.Data()
		if err != nil {
			return "", err
		}
		for len(notes) >= 12 {
			name, desc, kind := f.ByteOrder.Uint32(notes), f.ByteOrder.Uint32(notes[4:]), f.ByteOrder.Uint32(notes[8:])
			at := 12 + uint64(name+3)&^3
			end := at + uint64(desc+3)&^3
			if end > uint64(len(notes)) {
				break
			}
			if kind == ntGNUBuildID && desc >= 2 && string(notes[12:12+min(name, 4)]) == "GNU\x00" {
				return hex.EncodeToString(notes[at : at+uint64(desc)]), nil
			}
			notes = notes[end:]
		}
	}
	return "", errors.New("no build ID")
}
