package profile

import (
	"bytes"
	"sort"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

const (
	maxMaps = 1 << 16 // mapped files with code: Linux allows a process 65,530 mappings
	maxPath = 4096    // bytes of a path: Linux's PATH_MAX
)

// A mapList has the mapped code of a process, as in /proc/PID/maps.
type mapList struct {
	all    []stacks.Mapping
	sorted []int // indexes into all, ordered by address; made by find
}

// mapsMark begins the list of mappings in profiles of gperftools and jemalloc.
var mapsMark = []byte("MAPPED_LIBRARIES:")

// read reads the lines of a list, up to maxMaps mappings. It leaves out mappings without code, and
// lines that are not mappings. Adjacent pieces of a file, as after mprotect, become one mapping.
func (l *mapList) read(text []byte, m *memory) error {
	for line := range bytes.Lines(text) {
		next, ok := parseMap(line)
		if !ok {
			continue
		}
		if n := len(l.all); n > 0 {
			last := &l.all[n-1]
			if last.Limit == next.Start && last.File == next.File && last.File != "" && last.Offset+(last.Limit-last.Start) == next.Offset {
				last.Limit = next.Limit
				continue
			}
		}
		if len(l.all) == maxMaps {
			break
		}
		if err := m.take(len(next.File) + 256); err != nil {
			return err
		}
		l.all = append(l.all, next)
	}
	return nil
}

// parseMap parses a line such as
//
//	7f48fa7b9000-7f48fa90e000 r-xp 00022000 fe:00 1234    /usr/lib/libc.so.6
//
// It fails for mappings that are not executable.
func parseMap(line []byte) (m stacks.Mapping, ok bool) {
	rest := bytes.TrimSpace(line)
	var fields [5][]byte
	for i := range fields {
		end := bytes.IndexByte(rest, ' ')
		if end < 0 {
			if i < len(fields)-1 {
				return m, false
			}
			end = len(rest)
		}
		fields[i] = rest[:end]
		rest = bytes.TrimLeft(rest[end:], " \t")
	}
	from, to, dash := bytes.Cut(fields[0], []byte{'-'})
	start, ok1 := report.Hex(from)
	limit, ok2 := report.Hex(to)
	offset, ok3 := report.Hex(fields[2])
	if !dash || !ok1 || !ok2 || !ok3 || start >= limit || len(fields[1]) < 3 || fields[1][2] != 'x' || len(rest) > maxPath {
		return m, false
	}
	return stacks.Mapping{Start: start, Limit: limit, Offset: offset, File: string(rest)}, true
}

// find returns the number of the mapping that contains addr, or 0. It examines only the last
// mapping that begins at or before addr, even if mappings overlap.
func (l *mapList) find(addr uint64) uint32 {
	if len(l.sorted) != len(l.all) {
		l.sorted = l.sorted[:0]
		for i := range l.all {
			l.sorted = append(l.sorted, i)
		}
		sort.SliceStable(l.sorted, func(a, b int) bool { return l.all[l.sorted[a]].Start < l.all[l.sorted[b]].Start })
	}
	n := sort.Search(len(l.sorted), func(i int) bool { return l.all[l.sorted[i]].Start > addr })
	if n == 0 {
		return 0
	}
	if i := l.sorted[n-1]; addr < l.all[i].Limit {
		return uint32(i + 1)
	}
	return 0
}
