package llvmfilter

import (
	"slices"
	"sort"

	"github.com/symfilter/symfilter/buildid"
)

// A space holds the modules and maps of the process, from contextual elements.
type space struct {
	modules map[uint64]*module
	maps    mapList
	size    int  // bytes of names
	used    bool // a module was defined once, so LLVM's table has slots
}

// A module is a file that the process has loaded.
type module struct {
	id    uint64
	name  string
	build buildid.ID // zero if the ID is too long to search for

	waited bool // a lookup has waited for the module's file
}

// A mapping is a range of addresses that belongs to a module.
type mapping struct {
	addr, size uint64
	rel        uint64 // module-relative address of addr
	mode       string // a subset of r, w and x
	module     *module
}

// contains reports whether addr is in the range. A range that ends at 2^64 contains nothing, as in
// LLVM, where its end is 0.
func (m *mapping) contains(addr uint64) bool { return m.addr <= addr && addr < m.addr+m.size }

// end returns the last address of the range, for the output.
func (m *mapping) end() uint64 { return m.addr + m.size - 1 }

// unusedID is the module ID of unused slots in LLVM's table. Once the table has slots, a
// definition of this ID finds one, and counts as a duplicate.
const unusedID = 1<<64 - 1

// defined reports whether LLVM takes the ID of a new module for a duplicate.
func (s *space) defined(id uint64) bool {
	return s.modules[id] != nil || id == unusedID && s.used
}

func (s *space) addModule(m *module) {
	if s.modules == nil {
		s.modules = make(map[uint64]*module)
	}
	s.modules[m.id] = m
	s.size += len(m.name)
	s.used = true
}

func (s *space) empty() bool { return len(s.modules) == 0 && s.maps.count == 0 }

func (s *space) forget() {
	s.modules, s.maps, s.size = nil, mapList{}, 0
}

// containing returns the map that contains an address, or nil. It checks only the last map that
// begins at or below the address. As in LLVM, this map hides the maps that it overlaps.
func (s *space) containing(addr uint64) *mapping {
	if below, _ := s.maps.around(addr); below != nil && below.contains(addr) {
		return below
	}
	return nil
}

// overlapping returns a map that m overlaps, or nil.
func (s *space) overlapping(m *mapping) *mapping {
	below, above := s.maps.around(m.addr)
	if above != nil && m.contains(above.addr) {
		return above
	}
	if below != nil && below.contains(m.addr) {
		return below
	}
	return nil
}

// A mapList holds maps sorted by address. Its runs are short, so an insertion moves few maps.
type mapList struct {
	runs  [][]*mapping // no run is empty
	count int
	moved int // maps that insertions have moved within their runs
}

const maxRun = 512 // maps in a run: the square root of maxMaps

// around returns the last map that begins at or below addr and the first that begins above it.
func (l *mapList) around(addr uint64) (below, above *mapping) {
	r := sort.Search(len(l.runs), func(i int) bool { return l.runs[i][0].addr > addr })
	if r < len(l.runs) {
		above = l.runs[r][0]
	}
	if r == 0 {
		return nil, above
	}
	run := l.runs[r-1]
	i := sort.Search(len(run), func(i int) bool { return run[i].addr > addr })
	if i < len(run) {
		above = run[i]
	}
	return run[i-1], above
}

// insert adds m and returns it. If a map already begins at m's address, it returns that map
// instead.
func (l *mapList) insert(m *mapping) *mapping {
	r := sort.Search(len(l.runs), func(i int) bool { return l.runs[i][0].addr > m.addr })
	if r > 0 {
		r--
	}
	if len(l.runs) == 0 {
		l.runs = [][]*mapping{nil}
	}
	run := l.runs[r]
	i := sort.Search(len(run), func(i int) bool { return run[i].addr > m.addr })
	if i > 0 && run[i-1].addr == m.addr {
		return run[i-1]
	}
	l.moved += len(run) - i
	run = slices.Insert(run, i, m)
	l.runs[r] = run
	l.count++
	if len(run) > maxRun {
		half := slices.Clone(run[maxRun/2:])
		clear(run[maxRun/2:])
		l.runs[r] = run[:maxRun/2]
		l.runs = slices.Insert(l.runs, r+1, half)
	}
	return m
}
