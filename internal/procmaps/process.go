//go:build linux

package procmaps

import (
	"bytes"
	"io"
	"os"
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

// A process is a process whose maps were read.
type process struct {
	pid      int
	folder   *os.Root // of /proc; it stays that of this process when another one gets its number
	mappings []mapping
	random   bool // the kernel has chosen its addresses at random
}

// A mapping is a mapping with code.
type mapping struct {
	place
	path    string
	deleted bool      // the file no longer has the path
	file    *file     // nil: there is none, or it cannot be read
	gone    time.Time // when it was missing first; zero: it is there
}

// A place is what a mapping keeps while it exists.
type place struct {
	start, end, offset uint64
	dev, inode         uint64
}

// openProcess returns the process with this number, or nil.
func openProcess(pid int) *process {
	folder, err := os.OpenRoot("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil
	}
	return &process{pid: pid, folder: folder}
}

// readFile returns at most most bytes of a file in the folder of the process.
func (of *process) readFile(name string, most int64) ([]byte, error) {
	f, err := of.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// children returns the numbers of the processes that the process has started.
func (of *process) children() (pids []int) {
	tasks, err := of.folder.Open("task")
	if err != nil {
		return nil
	}
	defer tasks.Close()
	threads, _ := tasks.Readdirnames(maxThreads)
	for _, thread := range threads {
		text, err := of.readFile("task/"+thread+"/children", 8*maxChildren)
		if err != nil {
			continue // it has ended, or the kernel was built without these files
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// update reads the maps of the process. It returns false if the process has ended.
func (of *process) update(p *Processes, now time.Time) bool {
	text, err := of.readFile("maps", maxMapBytes)
	if err != nil || len(text) == 0 { // a process that ends gives up its memory first
		return false
	}
	before := make(map[place]*mapping, len(of.mappings))
	for i := range of.mappings {
		before[of.mappings[i].place] = &of.mappings[i]
	}
	var all []mapping
	of.random = isRandom(text)
	for line := range bytes.Lines(text) {
		m, ok := parseMapping(line)
		if !ok || len(all) == maxMappings {
			continue
		}
		if old := before[m.place]; old != nil && old.gone.IsZero() {
			m.file = old.file
		} else {
			m.file = p.fileOf(of, &m)
		}
		all = append(all, m)
	}
	here := make(map[place]bool, len(all))
	for i := range all {
		here[all[i].place] = true
	}
	for place, old := range before {
		if here[place] {
			continue
		}
		if old.gone.IsZero() {
			old.gone = now
		}
		if now.Sub(old.gone) < lingers && len(all) < 2*maxMappings {
			all = append(all, *old)
		}
	}
	of.mappings = all
	return true
}

// narrow is the number of addresses of 32 bits: programs that are not position-independent are in
// them, and the kernel randomizes as few as 8 bits of an address there.
const narrow = 1 << 32

// isRandom reports whether the kernel has randomized the addresses of a process with these maps. If
// it has not, as for setarch -R, the stack ends with the last page of the address space, or on x86
// with the page before that.
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

// agrees reports whether m and o have the same code at each address in both.
func (m *mapping) agrees(o *mapping) bool {
	return m.start-m.offset == o.start-o.offset && m.file != nil && m.file == o.file
}

// parseMapping parses a line of /proc/PID/maps. ok is false if the mapping has no code.
//
//	7f31c2a00000-7f31c2a01000 r-xp 00001000 fe:01 1835021    /opt/shop/libledger.so
func parseMapping(line []byte) (m mapping, ok bool) {
	fields := strings.SplitN(strings.TrimRight(string(line), "\n")+" ", " ", 6)
	if len(fields) < 6 || len(fields[1]) != 4 || fields[1][2] != 'x' {
		return m, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	major, minor, _ := strings.Cut(fields[3], ":")
	var numbers [5]uint64
	for i, digits := range []string{from, to, fields[2], major, minor} {
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return m, false
		}
		numbers[i] = n
	}
	m.start, m.end, m.offset = numbers[0], numbers[1], numbers[2]
	m.dev = unix.Mkdev(uint32(numbers[3]), uint32(numbers[4]))
	inode, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil {
		return m, false
	}
	m.inode = inode
	if name := strings.TrimSpace(fields[5]); strings.HasPrefix(name, "/") {
		m.path, m.deleted = strings.CutSuffix(name, " (deleted)")
	}
	return m, true
}
