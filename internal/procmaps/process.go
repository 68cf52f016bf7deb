//go:build linux

package procmaps

import (
	"bytes"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxThreads  = 64   // threads of a process whose children are looked for
	maxChildren = 4096 // children of a thread
	maxMappings = 4096 // mappings with code of a process; a browser has 600
)

// A process is the program or one of its descendants.
type process struct {
	view
	folder  *os.Root // /proc/PID, which never leads to a later process with this PID
	sum     uint64   // hash of the text of its maps
	settled bool     // no mapping is kept that the process gave up
}

// A mapping is a range of memory with code.
type mapping struct {
	place
	path    string
	deleted bool          // path has no file, or another one
	file    *file         // nil if there is no file, or if it cannot be read
	gone    time.Duration // the clock when the mapping was first missing; 0 while it exists
}

// A place has the properties of a mapping that never change.
type place struct {
	start, end, offset uint64
	dev, inode         uint64
}

// openProcess returns the process with this PID, or nil if there is none.
func openProcess(pid int) *process {
	folder, err := os.OpenRoot("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil
	}
	return &process{view: view{pid: pid}, folder: folder}
}

// readFile returns a file in the process's folder, up to the given number of bytes. cut is set if
// the file has more.
func (of *process) readFile(name string, most int64) (text []byte, cut bool, err error) {
	f, err := of.folder.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(text)) > most {
		return text[:most], true, err
	}
	return text, false, err
}

// children returns the PIDs of the process's children. cut is set if some are left out.
func (of *process) children() (pids []int, cut bool) {
	tasks, err := of.folder.Open("task")
	if err != nil {
		return nil, false
	}
	defer tasks.Close()
	threads, _ := tasks.Readdirnames(maxThreads + 1)
	if len(threads) > maxThreads {
		threads, cut = threads[:maxThreads], true
	}
	for _, thread := range threads {
		text, more, err := of.readFile("task/"+thread+"/children", 8*maxChildren)
		if err != nil {
			continue // it has ended, or the kernel was built without these files
		}
		if more {
			text, cut = text[:bytes.LastIndexByte(text, ' ')+1], true // the last number may be cut
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, cut
}

// update reads the maps of the process. It returns false if the process has ended.
func (of *process) update(l *looker, overwritten map[*file]bool) bool {
	text, cut, err := of.readFile("maps", maxMapBytes)
	if err != nil || len(text) == 0 { // a process that ends gives up its memory first
		return false
	}
	l.cut = l.cut || cut
	sum := maphash.Bytes(l.seed, text)
	stale := slices.ContainsFunc(of.mappings, func(m mapping) bool { return overwritten[m.file] })
	if sum == of.sum && of.settled && !stale {
		return true
	}
	before := make(map[place]*mapping, len(of.mappings))
	for i := range of.mappings {
		if m := &of.mappings[i]; m.gone == 0 {
			before[m.place] = m
		}
	}
	of.random, of.foreign = isRandom(text), of.isForeign()
	var all []mapping
	here := make(map[place]bool)
	for line := range bytes.Lines(text) {
		m, code, ok := parseMapping(line)
		if !ok || !code {
			continue
		}
		if len(all) == maxMappings {
			l.cut = true
			break
		}
		if old := before[m.place]; old != nil && !overwritten[old.file] {
			m.file, here[m.place] = old.file, true
		} else {
			m.file = l.fileOf(of, &m)
		}
		all = append(all, m)
	}
	of.sum, of.settled = sum, true
	for _, old := range of.mappings {
		if old.gone == 0 && here[old.place] {
			continue
		}
		if old.gone == 0 {
			old.gone = l.clock + 1
		}
		if l.clock-old.gone < lingers && len(all) < 2*maxMappings {
			all, of.settled = append(all, old), false
		}
	}
	of.mappings = all
	return true
}

// adopt calls find for each mapping whose file is missing, and sets the file to the result, unless
// that is nil.
func (of *process) adopt(find func(m *mapping) *file) {
	copied := false
	for i := range of.mappings {
		m := &of.mappings[i]
		if m.file != nil || m.gone != 0 || m.path == "" {
			continue
		}
		if f := find(m); f != nil {
			if !copied { // the views of the last look share the slice
				of.mappings, copied = slices.Clone(of.mappings), true
			}
			of.mappings[i].file = f
		}
	}
}

// isForeign reports whether a path may lead to another file in the process than in this one, since
// its root directory or mount namespace differs.
func (of *process) isForeign() bool {
	for _, name := range []string{"root", "ns/mnt"} { // the root directory, and the mount namespace
		theirs, err := os.Stat("/proc/" + strconv.Itoa(of.pid) + "/" + name)
		own, err2 := os.Stat("/proc/self/" + name)
		if err == nil && err2 == nil && !os.SameFile(theirs, own) {
			return true
		}
	}
	return false
}

// narrow is the end of the 32-bit addresses. Programs that are not position-independent are below
// it, where the kernel randomizes as few as 8 bits of an address.
const narrow = 1 << 32

// isRandom reports whether the kernel randomized the addresses of a process with these maps.
// Without randomization, as after setarch -R, the stack ends with the last page of the address
// space. On x86 it may end one page earlier.
func isRandom(maps []byte) bool {
	before, _, found := bytes.Cut(maps, []byte("[stack]\n"))
	if !found {
		return false
	}
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	_, rest, _ := bytes.Cut(line, []byte("-"))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	end, err := strconv.ParseUint(string(digits), 16, 64)
	if err != nil || end == 0 {
		return false
	}
	const page = 4096 // x86 has no larger ones
	return end&(end-1) != 0 && (end+page)&(end+page-1) != 0
}

// agrees reports whether m and o have the same code at each address that both contain.
func (m *mapping) agrees(o *mapping) bool {
	return m.start-m.offset == o.start-o.offset && m.file.isSame(o.file)
}

// parseMapping parses a line of /proc/PID/maps. code is set if the mapping can be executed.
//
//	7f31c2a00000-7f31c2a01000 r-xp 00001000 fe:01 1835021    /opt/shop/libledger.so
func parseMapping(line []byte) (m mapping, code, ok bool) {
	fields := strings.SplitN(strings.TrimRight(string(line), "\n")+" ", " ", 6)
	if len(fields) < 6 || len(fields[1]) != 4 {
		return m, false, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	major, minor, _ := strings.Cut(fields[3], ":")
	var numbers [5]uint64
	for i, digits := range []string{from, to, fields[2], major, minor} {
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return m, false, false
		}
		numbers[i] = n
	}
	m.start, m.end, m.offset = numbers[0], numbers[1], numbers[2]
	m.dev = unix.Mkdev(uint32(numbers[3]), uint32(numbers[4]))
	inode, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil {
		return m, false, false
	}
	m.inode = inode
	if name := strings.TrimSpace(fields[5]); strings.HasPrefix(name, "/") {
		m.path, m.deleted = strings.CutSuffix(name, " (deleted)")
	}
	return m, fields[1][2] == 'x', true
}
