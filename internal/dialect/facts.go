package dialect

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

const (
	maxFactMaps    = 16384   // mappings of a process; a large server has several thousand
	maxFactModules = 4096    // modules with a build ID or a base
	maxFactBytes   = 2 << 20 // bytes of the names in all mappings and modules
	maxMapGap      = 64      // lines of other writers between two mappings in a list
	// number of lines without a fact after which a Reader forgets its facts: another process may
	// write now
	FactLines = 10000
)

// PageSize is the smallest page size in bytes. Load biases are multiples of it.
const PageSize = 4096

// PlainBase is the address at which Linux loads a position-independent x86-64 program without
// randomization, as under gdb. It is two thirds of the address space (ELF_ET_DYN_BASE), rounded to
// a page.
const PlainBase = 0x555555554000

// A Map is a mapping of a file in a process.
type Map struct {
	Start, End uint64 // first address and address after the last
	Offset     uint64 // offset in the file
	Path       string // without the mark for deleted files
	Code       bool   // the mapping is executable
	Deleted    bool   // the file was deleted while the program ran

	// FirstCode is set for a file's first executable mapping if its Offset is unknown.
	FirstCode bool
}

// A ModuleFact holds the facts about a module from lines that are not frames.
type ModuleFact struct {
	Name string // path, or file name without folders
	ID   buildid.ID
	// first bytes of its build ID if ID is unknown; zero if these are unknown too
	Prefix  buildid.ID
	Base    uint64 // address of its first page, if HasBase is set
	HasBase bool
	End     uint64 // address after the module; 0 if unknown
	Main    bool   // the module is the program itself
	Text    uint64 // address of its section .text, or a line number for Dart; 0 if unknown
}

// Facts are a log's facts about the modules of a process, from the lines around its traces. The
// zero value is empty.
type Facts struct {
	maps    []Map // by address if sorted is set; disjoint unless the log is wrong
	sorted  bool
	modules map[string]ModuleFact // by the last part of the name
	main    ModuleFact            // the program itself
	program Program               // program of a device, whose file the log does not name
	bytes   int
	changes int    // see Changes
	process uint64 // ID of the process that has logged the maps; 0 if unknown
	old     bool   // a trace has ended since the maps: see AgeMaps
}

// A factLog collects the Facts of the lines so far. It records which lines had the last fact and
// the last map.
type factLog struct {
	Facts
	at       int64  // last line with a fact
	mapAt    int64  // last line with a map; -1: none
	mapStart uint64 // start address of that map
}

// touch records that the line with this number has a fact. If the last fact is more than FactLines
// lines older, touch first forgets all facts except the program of a device.
func (f *factLog) touch(number int64) {
	if number-f.at > FactLines {
		program := f.program // kept, since a device prints it only at start
		f.Facts.Reset()
		f.SetProgram(program)
	}
	f.at = number
}

func (f *factLog) forget() {
	f.Facts.Reset()
	f.mapAt, f.mapStart = -1, 0
}

// addListed adds a mapping from a process's list with one mapping on each line. The first mapping
// of a new list replaces all earlier ones.
func (f *factLog) addListed(m Map, process uint64, number int64) {
	f.touch(number)
	if m.Start < f.mapStart || number-f.mapAt > maxMapGap || process != f.process {
		f.ForgetMaps()
		f.SetMapsOf(process, false)
	}
	f.mapAt, f.mapStart = number, m.Start
	f.AddMap(m)
}

// addProgram sets the program's path, or the name by which it was called. A name does not replace a
// path that ends with it.
func (f *Facts) addProgram(name []byte) {
	known := f.main.Name
	if known == "" || name[0] == '/' && string(name) != known || path.Base(known) != path.Base(string(name)) {
		f.AddModule(ModuleFact{Name: string(name), Main: true})
	}
}

// Changes returns a number that changes whenever f changes.
func (f *Facts) Changes() int { return f.changes }

// Reset forgets everything.
func (f *Facts) Reset() { *f = Facts{changes: f.changes + 1} }

// Empty reports whether f has no facts.
func (f *Facts) Empty() bool {
	return len(f.maps) == 0 && len(f.modules) == 0 && f.main == (ModuleFact{}) && f.program == (Program{})
}

// SetProgram sets the facts about a device's program, without fields that are too long.
func (f *Facts) SetProgram(p Program) {
	if p = p.bounded(); p != f.program {
		f.program = p
		f.changes++
	}
}

// Program returns the facts about a device's program.
func (f *Facts) Program() Program { return f.program }

// ForgetMaps forgets all mappings.
func (f *Facts) ForgetMaps() {
	if len(f.maps) > 0 {
		f.changes++
	}
	for i := range f.maps {
		f.bytes -= len(f.maps[i].Path)
	}
	f.maps, f.sorted = nil, false
	f.SetMapsOf(0, false)
}

// AgeMaps marks the maps as old if all of them precede the end of a trace, whose last line has the
// number last. The next trace may belong to another process: then several of its frames together
// must prove old maps.
func (r *Reader) AgeMaps(last int64) {
	if r.facts.mapAt <= last {
		r.facts.SetMapsOf(r.facts.process, len(r.facts.maps) > 0)
	}
}

// Around returns the mapping that covers the address of a frame, unless a process other than the
// frame's has logged the mappings.
func (f *Facts) Around(fr *Frame) (m Map, ok bool) {
	if fr.Addr == 0 || f.process != 0 && fr.PID != 0 && fr.PID != f.process {
		return m, false
	}
	return f.Covering(fr.Addr)
}

// AddMap adds a mapping, unless it has no path or the limits are reached.
func (f *Facts) AddMap(m Map) {
	if m.Path == "" || len(f.maps) >= maxFactMaps || !f.room(len(m.Path)) {
		return
	}
	f.sorted = len(f.maps) == 0 || f.sorted && f.maps[len(f.maps)-1].Start <= m.Start
	if n := len(f.maps); n > 0 && f.maps[n-1].Path == m.Path {
		m.Path = f.maps[n-1].Path // the mappings share the string
	}
	f.maps = append(f.maps, m)
	f.changes++
}

// AddModule adds a module within the limits. It replaces an earlier module with the same file name.
// If m only repeats that this module is the program, the earlier facts stay.
func (f *Facts) AddModule(m ModuleFact) {
	if m.Main && m != f.main {
		f.main = m
		f.changes++
	}
	if m.Main {
		if old := f.modules[path.Base(m.Name)]; old.Name == m.Name && m.ID.IsZero() && !m.HasBase {
			return // the earlier fact has more data
		}
	}
	if m.Name == "" || len(f.modules) >= maxFactModules || !f.room(len(m.Name)) {
		return
	}
	if f.modules == nil {
		f.modules = make(map[string]ModuleFact)
	}
	f.modules[path.Base(m.Name)] = m
	f.changes++
}

// room takes n bytes for names, and reports whether the limit allows them.
func (f *Facts) room(n int) bool {
	if f.bytes+n > maxFactBytes {
		return false
	}
	f.bytes += n
	return true
}

// Covering returns the mapping that contains the address.
func (f *Facts) Covering(addr uint64) (m Map, ok bool) {
	if !f.sorted {
		slices.SortStableFunc(f.maps, func(a, b Map) int {
			switch {
			case a.Start < b.Start:
				return -1
			case a.Start > b.Start:
				return 1
			}
			return 0
		})
		f.sorted = true
	}
	i, found := slices.BinarySearchFunc(f.maps, addr, func(m Map, addr uint64) int {
		switch {
		case addr < m.Start:
			return 1
		case addr >= m.End:
			return -1
		}
		return 0
	})
	if !found {
		return m, false
	}
	return f.maps[i], true
}

// Module returns the facts about the module with this name or path.
func (f *Facts) Module(name string) (m ModuleFact, ok bool) {
	m, ok = f.modules[path.Base(name)]
	if ok && strings.HasPrefix(name, "/") && strings.HasPrefix(m.Name, "/") && m.Name != name {
		return ModuleFact{}, false // another file with the same name
	}
	return m, ok
}

// Based returns the facts about the module with this load base.
func (f *Facts) Based(base uint64) (m ModuleFact, ok bool) {
	for _, m := range f.modules {
		if m.HasBase && m.Base == base {
			return m, true
		}
	}
	return m, false
}

// Main returns the facts about the program itself.
func (f *Facts) Main() ModuleFact { return f.main }

// Paths returns the absolute paths of modules that the log names outside of frames.
func (f *Facts) Paths() (all []string) {
	for _, m := range f.modules {
		if strings.HasPrefix(m.Name, "/") {
			all = append(all, m.Name)
		}
	}
	if strings.HasPrefix(f.main.Name, "/") {
		all = append(all, f.main.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// PathOf returns the path of the mapped code file with this name, ignoring deleted files. It
// returns "" if no path or several paths have the name.
func (f *Facts) PathOf(name string) (found string) {
	for i := range f.maps {
		if m := &f.maps[i]; m.Code && !m.Deleted && path.Base(m.Path) == name && m.Path != found {
			if found != "" {
				return ""
			}
			found = m.Path
		}
	}
	return found
}

// mapLine adds the mapping to the facts if b has an entry of /proc/PID/maps, and reports whether it
// has one:
//
//	7f31c2a00000-7f31c2a01000 r-xp 00001000 fe:01 1835021    /opt/shop/libledger.so
func (r *Reader) mapLine(b []byte) bool {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], ' ')
		if i < 0 {
			return false
		}
		at += i + 1
		if len(b) < at+5 {
			return false
		}
		if !isMode(b[at:]) {
			continue
		}
		end := at - 1
		dash := hexBefore(b, end)
		if dash < 1 || dash == end || b[dash-1] != '-' {
			return false
		}
		from := hexBefore(b, dash-1)
		if !standsFree(b, from) {
			return false
		}
		var m Map
		var ok1, ok2, ok3 bool
		m.Start, _, ok1 = hexAt(b[:dash-1], from)
		m.End, _, ok2 = hexAt(b[:end], dash)
		offset := at + 5
		m.Offset, offset, ok3 = hexAt(b, offset)
		if !ok1 || !ok2 || !ok3 || m.Start >= m.End || !hasAt(b, offset, " ") {
			return false
		}
		m.Code = b[at+2] == 'x'
		rest := b[offset+1:]
		for range 2 { // the device and the inode
			sp := bytes.IndexByte(rest, ' ')
			if sp < 0 {
				rest = nil
				break
			}
			rest = rest[sp+1:]
		}
		rest = bytes.TrimSpace(rest)
		if cut, deleted := bytes.CutSuffix(rest, []byte(" (deleted)")); deleted {
			rest, m.Deleted = cut, true
		}
		if len(rest) > 0 && rest[0] == '/' && len(rest) <= maxPath {
			m.Path = r.modules.name(rest)
		}
		r.facts.addListed(m, processIn(b[:from]), r.number)
		r.line.MapStart = from
		if !r.inPast {
			r.holdsUntil = -1 // the maps announced by a header have arrived
		}
		return true
	}
}

// isMode reports whether b begins with the mode of a mapping and a blank.
func isMode(b []byte) bool {
	return (b[0] == 'r' || b[0] == '-') && (b[1] == 'w' || b[1] == '-') && (b[2] == 'x' || b[2] == '-') &&
		(b[3] == 'p' || b[3] == 's') && b[4] == ' '
}
