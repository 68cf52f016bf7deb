package filter

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"unique"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
)

// A module is a binary that a module element in the log has defined.
type module struct {
	id uint64
	// shared by the modules of all processes with the same binary
	binary  unique.Handle[cacheModule]
	awaited *report.Awaited // patience for its debug file; nil if it has not started
	cached  atomic.Uint32   // number in the Cache; 0 if none was requested yet
	maps    int32           // number of the module's intervals in the space
}

func newModule(number uint64, id buildid.ID, name string) *module {
	return &module{id: number, binary: unique.Make(cacheModule{id: id, name: name})}
}

func (m *module) name() string { return m.binary.Value().name }

// asked returns the name of m for the symbolizer: see report.NameOf.
func (m *module) asked() string {
	of := m.binary.Value()
	return report.NameOf(of.name, of.state)
}

// buildID returns the build ID of m, or zero if the log has none.
func (m *module) buildID() buildid.ID { return m.binary.Value().id }

// An interval is an address range mapped to one module.
type interval struct {
	start, end uint64 // inclusive, since a map may end at 2^64
	rel        uint64 // module-relative address of start
	mod        *module
	mode       markup.Mode
}

// A space is the address space of one process: its modules and their maps. A later map replaces the
// overlapping part of an earlier one. A space does no I/O and reads no clock.
//
// The intervals are disjoint and sorted, in runs of at most runLen, so a new map moves only a few
// intervals.
type space struct {
	modules map[uint64]*module
	runs    [][]interval
	n       int // intervals in all runs
	// bytes of the names of all modules in modules, and of replaced modules that still have maps
	names int
	last  interval // last interval found; mod is nil if there is none
	moved int64    // total number of moved intervals and runs, for tests
}

const runLen = 512 // intervals in a run; a new map moves at most this many

var (
	errZeroSize   = errors.New("a map of size 0 holds no address")
	errTooManyMap = fmt.Errorf("a process may have at most %d maps", maxMaps)
	errTooManyMod = fmt.Errorf("a process may have at most %d modules, with %d MiB of names", maxModules, maxNames>>20)
)

// hasModules reports whether a module has been defined since the last reset.
func (s *space) hasModules() bool { return len(s.modules) > 0 }

// weight returns the size of the space in units of weightBytes.
func (s *space) weight() int { return s.n + moduleWeight*len(s.modules) + s.names/64 }

// moduleWeight is the weight of a module whose binary no other process has: 280 to 330 bytes,
// mostly in the table of [unique]. A module that shares its binary takes 64 to 75 bytes.
const moduleWeight = 4

func (s *space) reset() { *s = space{moved: s.moved} }

// define adds the module m, unless the space already has an equal module. The argument file counts
// how long lines wait for the module's debug file. changed is set if m's ID belonged to another
// binary, whose maps stay.
func (s *space) define(m markup.Module, file *report.Awaited) (mod *module, changed bool, err error) {
	old := s.modules[m.ID]
	if old != nil && old.buildID() == m.BuildID && old.name() == m.Name {
		return old, false, nil
	}
	mod = newModule(m.ID, m.BuildID, m.Name)
	mod.awaited = file
	if err := s.add(mod); err != nil {
		return nil, false, err
	}
	return mod, old != nil, nil
}

// add adds mod in place of any module with its ID.
func (s *space) add(mod *module) error {
	names := s.names + len(mod.name())
	old := s.modules[mod.id]
	if old != nil && old.maps == 0 {
		names -= len(old.name())
	}
	if old == nil && len(s.modules) >= maxModules || names > maxNames {
		return errTooManyMod
	}
	s.names = names
	if s.modules == nil {
		s.modules = make(map[uint64]*module)
	}
	s.modules[mod.id] = mod
	return nil
}

// load adds a map of mod. It returns the added interval, which ends at 2^64 if m would wrap around.
// If the map replaces addresses of another module, over is this module.
func (s *space) load(m markup.MMap, mod *module) (got interval, over *module, err error) {
	if m.Size == 0 {
		return interval{}, nil, errZeroSize
	}
	end := m.Addr + (m.Size - 1)
	if end < m.Addr {
		end = math.MaxUint64
	}
	got = interval{start: m.Addr, end: end, rel: m.Rel, mod: mod, mode: m.Mode}
	if s.n+2 > maxMaps {
		return got, nil, errTooManyMap
	}
	return got, s.put(got), nil
}

// put adds v in place of all maps in its range. It returns the result of carve.
func (s *space) put(v interval) (over *module) {
	over = s.carve(v)
	r, i := s.locate(v.start)
	s.insert(r, i, v)
	s.last = interval{}
	return over
}

// find returns the interval that covers addr; mod is nil if there is none.
func (s *space) find(addr uint64) interval {
	if s.last.mod != nil && s.last.start <= addr && addr <= s.last.end {
		return s.last
	}
	v := s.covering(addr)
	if v.mod != nil {
		s.last = v
	}
	return v
}

// covering is find without the cache s.last, which find writes. It is safe for concurrent readers.
func (s *space) covering(addr uint64) interval {
	if r, i := s.locate(addr); r < len(s.runs) && s.runs[r][i].start <= addr {
		return s.runs[r][i]
	}
	return interval{}
}

// at returns the module-relative address of addr, which is in v.
func (v interval) at(addr uint64) uint64 { return v.rel + (addr - v.start) }

// locate returns the run and the index in it of the first interval that ends at or after addr. If
// there is none, run is len(s.runs).
func (s *space) locate(addr uint64) (run, index int) {
	run = sort.Search(len(s.runs), func(r int) bool {
		v := s.runs[r]
		return v[len(v)-1].end >= addr
	})
	if run == len(s.runs) {
		return run, 0
	}
	v := s.runs[run]
	return run, sort.Search(len(v), func(i int) bool { return v[i].end >= addr })
}

// carve unmaps the range of v. It returns the last module that lost addresses, or nil. A module
// with the build ID of v loses nothing if its module-relative addresses stay the same.
func (s *space) carve(v interval) (over *module) {
	for {
		r, i := s.locate(v.start)
		if r == len(s.runs) || s.runs[r][i].start > v.end {
			return over
		}
		old := s.runs[r][i]
		if old.mod.buildID() != v.mod.buildID() || old.at(v.start) != v.rel {
			over = old.mod
		}
		switch {
		case old.start < v.start && old.end > v.end:
			s.runs[r][i].end = v.start - 1
			s.insert(r, i+1, interval{v.end + 1, old.end, old.at(v.end + 1), old.mod, old.mode})
			return over
		case old.start < v.start:
			s.runs[r][i].end = v.start - 1
		case old.end > v.end:
			s.runs[r][i].start, s.runs[r][i].rel = v.end+1, old.at(v.end+1)
			return over
		default:
			s.remove(r, i)
		}
	}
}

// insert inserts v at an index in a run that preserves the order.
func (s *space) insert(run, index int, v interval) {
	s.n++
	v.mod.maps++
	if run == len(s.runs) {
		if run == 0 || len(s.runs[run-1]) >= runLen {
			s.runs = append(s.runs, append(make([]interval, 0, 8), v))
			return
		}
		run--
		index = len(s.runs[run])
	}
	v0 := s.runs[run]
	if len(v0) == cap(v0) { // doubling would waste memory in contexts that are idle for long
		v0 = append(make([]interval, 0, min(len(v0)+max(8, len(v0)/4), runLen+1)), v0...)
	}
	v0 = append(v0, interval{})
	s.moved += int64(copy(v0[index+1:], v0[index:]))
	v0[index] = v
	if len(v0) <= runLen {
		s.runs[run] = v0
		return
	}
	half := len(v0) / 2
	rest := append(make([]interval, 0, runLen+1), v0[half:]...)
	s.runs[run] = v0[:half]
	s.runs = append(s.runs, nil)
	s.moved += int64(half + copy(s.runs[run+2:], s.runs[run+1:]))
	s.runs[run+1] = rest
}

func (s *space) remove(run, index int) {
	s.n--
	v := s.runs[run]
	if mod := v[index].mod; mod.maps == 1 && s.modules[mod.id] != mod {
		s.names -= len(mod.name())
	}
	v[index].mod.maps--
	s.moved += int64(len(v) - index)
	if len(v) == 1 {
		s.moved += int64(len(s.runs) - run)
		s.runs = append(s.runs[:run], s.runs[run+1:]...)
		return
	}
	s.runs[run] = append(v[:index], v[index+1:]...)
}

// hasMap reports whether the space already has the map m of mod.
func (s *space) hasMap(m markup.MMap, mod *module) bool {
	v := s.find(m.Addr)
	return v.mod == mod && v.start == m.Addr && v.end == m.Addr+(m.Size-1) && v.rel == m.Rel && m.Size != 0
}

// each calls do at least once for each module, including a mapped module whose ID another module
// has now.
func (s *space) each(do func(*module)) {
	for _, m := range s.modules {
		do(m)
	}
	for _, run := range s.runs {
		for i, v := range run {
			if s.modules[v.mod.id] != v.mod && (i == 0 || run[i-1].mod != v.mod) {
				do(v.mod)
			}
		}
	}
}

func (s *space) ids() []uint64 { return slices.Sorted(maps.Keys(s.modules)) }
