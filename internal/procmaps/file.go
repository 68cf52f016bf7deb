//go:build linux

package procmaps

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// A file is an ELF file that a process has mapped.
type file struct {
	id     buildid.ID // zero if it has none
	info   fs.FileInfo
	fixed  bool // its load address is its link address
	code   []object.Segment
	lowest uint64 // link address of its first page
}

// A fileKey identifies one state of a file.
type fileKey struct {
	dev, inode     uint64
	size           int64
	changed, wrote syscall.Timespec
}

func keyOf(info fs.FileInfo) fileKey {
	state := info.Sys().(*syscall.Stat_t)
	return fileKey{state.Dev, state.Ino, state.Size, state.Ctim, state.Mtim}
}

// isContent reports whether k and o are states of one file with the same contents. They may differ
// only in the field changed, the time of the last change of rights or links.
func (k fileKey) isContent(o fileKey) bool {
	k.changed = o.changed
	return k == o
}

// isSame reports whether f and o, which may be nil, have the same code.
func (f *file) isSame(o *file) bool {
	switch {
	case f == nil || o == nil:
		return false
	case f == o, !f.id.IsZero() && f.id == o.id:
		return true
	}
	return f.id == o.id && keyOf(f.info).isContent(keyOf(o.info))
}

// isOverwritten reports whether the path place leads to f, but with other contents.
func (f *file) isOverwritten(place string) bool {
	info, err := os.Stat(place)
	return err == nil && os.SameFile(info, f.info) && !keyOf(info).isContent(keyOf(f.info))
}

// places returns the paths at which the file of a mapping may be opened, its own path first.
func (of *process) places(m *mapping) []string {
	proc := fmt.Sprintf("/proc/%d", of.pid)
	return []string{proc + "/root" + m.path, fmt.Sprintf("%s/map_files/%x-%x", proc, m.start, m.end), proc + "/exe"}
}

// fileOf returns the file of a mapping of the process, or nil if the file cannot be opened. The
// file's device and inode must be the mapping's, since another file may have the path by now.
func (l *looker) fileOf(of *process, m *mapping) *file {
	if m.path == "" {
		return nil
	}
	places := of.places(m)
	if m.deleted {
		places = places[1:] // map_files needs a privilege, and exe is the program's own file only
	}
	for _, place := range places {
		if f := l.open(place, m); f != nil {
			return f
		}
	}
	return nil
}

// open returns the file at the path place, or nil if m is not a mapping of that file.
func (l *looker) open(place string, m *mapping) *file {
	info, err := os.Stat(place)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(place, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil || !info.Mode().IsRegular() || !isOf(f, info, m) {
		return nil
	}
	key := keyOf(info)
	if known := l.files[key]; known != nil {
		return known
	}
	read := readFile(f, info)
	if after, err := f.Stat(); err != nil || keyOf(after) != key {
		return nil // it is being written
	}
	if len(l.files) >= maxFiles {
		clear(l.files)
	}
	l.files[key] = read
	return read
}

// isOf reports whether m is a mapping of f. On btrfs and overlayfs, the device in maps is not
// the file's. So f is also mapped here, to compare m with the maps of this process.
func isOf(f *os.File, info fs.FileInfo, m *mapping) bool {
	state := info.Sys().(*syscall.Stat_t)
	if state.Ino == m.inode && state.Dev == m.dev {
		return true
	}
	own, ok := mapped(f)
	return ok && own.inode == m.inode && own.dev == m.dev
}

// mapped returns the line for a mapping of f in the maps of this process.
func mapped(f *os.File) (m mapping, ok bool) {
	memory, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return m, false
	}
	defer unix.Munmap(memory)
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return m, false
	}
	start := fmt.Appendf(nil, "%x-", uintptr(unsafe.Pointer(&memory[0])))
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, start) {
			m, _, ok = parseMapping(line)
			return m, ok
		}
	}
	return m, false
}

// readFile reads the headers of a file. A file that is not ELF has no code.
func readFile(f *os.File, info fs.FileInfo) *file {
	read := &file{info: info}
	image, err := object.Open(f, info.Size(), nil)
	if err != nil {
		return read
	}
	defer image.Close()
	object.Guard(func() {
		found := false
		for _, s := range image.Segments() {
			if s.Type != elf.PT_LOAD || s.MemSize == 0 {
				continue
			}
			if !found || s.Addr < read.lowest {
				read.lowest, found = s.Addr, true
			}
			if s.Flags&elf.PF_X != 0 {
				read.code = append(read.code, s)
			}
		}
		read.lowest &^= pageSize - 1
		read.fixed = image.Type == elf.ET_EXEC
		read.id, _ = buildid.Read(f, info.Size())
	})
	return read
}

// pageSize is the size of a page of this kernel: 16 or 64 KiB on some AArch64.
var pageSize = uint64(os.Getpagesize())

// bias returns the load bias of the file: the address of m in the process, minus its address in the
// file. m may begin before the code of a segment, at the start of a page. ok is false if no segment
// fits, if two fit with different biases, or if a fixed file was moved.
func (f *file) bias(m *mapping, page uint64) (bias uint64, ok bool) {
	for _, s := range f.code {
		first := s.Offset &^ (page - 1)
		if m.offset < first || m.offset >= s.Offset+s.FileSize {
			continue
		}
		found := m.start - (s.Addr - s.Offset + m.offset)
		if ok && found != bias {
			return 0, false
		}
		bias, ok = found, true
	}
	return bias, ok && (!f.fixed || bias == 0)
}
