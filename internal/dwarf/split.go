package dwarf

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/symfilter/symfilter/internal/object"
)

// Compilers can put most of a unit into another file (DWARF 5, 3.1.2 and 7.3; before it, GNU's
// DebugFission). The linked file keeps a skeleton, with the addresses, the line table, and the name
// and ID of the split unit. The split unit describes the functions. It is in a .dwo file, or in a
// package (.dwp) with all split units of a program.

// Links opens files with further debug information. A nil function opens none.
type Links struct {
	// Package opens the package of split units. It is called for the first unit that needs it, and
	// again after the package was closed to save memory.
	Package func() Linked

	// Split opens the .dwo file of a unit. name and dir are the recorded name and compilation
	// directory. Split tries name in dir, then other places. It returns the first file for which
	// holds returns true.
	Split func(dir, name string, holds func(*object.File) bool) Linked
}

// Linked is an open file. Close closes it. A nil Object means no file.
type Linked struct {
	Object *object.File
	Close  func()
}

// links holds the files that a Data has opened, and the functions that open them.
type links struct {
	Links
	d      *Data
	alt    *Data // reads the supplementary file
	pack   *splitFile
	noPack bool
	files  map[string]*splitFile // by directory and name
	// heap bytes of all files, without the supplementary file's sections
	held    int64
	keyHeap int64 // bytes of the entries of files, with their keys
	open    int   // packages and .dwo files
}

// A splitFile is a file with split units.
type splitFile struct {
	key   string
	data  *Data // nil: closed
	file  Linked
	index unitIndex // index of a package
	used  uint64    // number of the lookup that last used the file
	held  int64     // bytes of heap when last counted
}

// A half locates the split unit that belongs to a skeleton.
type half struct {
	file *splitFile // nil if the split unit was not found
	off  uint64     // offset of the unit in .debug_info.dwo
	part part
}

// A part holds the offsets at which a unit's contributions begin in the sections of a package.
type part struct {
	abbrev, strOffsets, rnglists uint64
}

func (d *Data) link(l Links) {
	if l.Package != nil || l.Split != nil {
		d.links = &links{Links: l, d: d}
	}
}

// UseAlt makes f the supplementary file, which has entries and strings that dwz moved. It ignores a
// file with another byte order. UseAlt must come before the first Lookup, and f must stay open as
// long as d is in use.
func (d *Data) UseAlt(f *object.File) {
	if (f.Order == binary.BigEndian) != d.big {
		return
	}
	if d.links == nil {
		d.links = &links{d: d}
	}
	d.links.alt = newData(sections{big: d.big, load: f.Data})
	d.links.alt.names, d.links.alt.meter = d.names, d.meter
	d.sec.alt = &d.links.alt.sec
	for _, s := range altSections {
		d.sec.loaded[s.id], d.sec.data[s.id] = false, nil
	}
}

// Linked returns the number of open files, without the files given to New and UseAlt.
func (d *Data) Linked() int {
	if d.links == nil {
		return 0
	}
	return d.links.open
}

// Close closes the files that d has opened. d must not be used after that.
func (d *Data) Close() {
	for _, f := range d.links.all() {
		d.links.close(f)
	}
}

func (l *links) footprint() int64 {
	if l == nil {
		return 0
	}
	return l.held + l.keyHeap
}

// all returns the package and the .dwo files that are open.
func (l *links) all() []*splitFile {
	if l == nil {
		return nil
	}
	all := make([]*splitFile, 0, len(l.files)+1)
	if l.pack != nil {
		all = append(all, l.pack)
	}
	for _, f := range l.files {
		all = append(all, f)
	}
	return all
}

// close closes a file. The next lookup in one of its skeletons opens it again.
func (l *links) close(f *splitFile) {
	if f.data == nil {
		return
	}
	l.held -= f.held
	l.open--
	l.drop(f)
	f.file.Close()
	f.file, f.data, f.index, f.held = Linked{}, nil, unitIndex{}, 0
}

func (l *links) drop(f *splitFile) {
	if l.pack == f {
		l.pack = nil
		return
	}
	delete(l.files, f.key)
	l.keyHeap -= fileCost + int64(len(f.key))
}

// shrink drops the parsed units of the supplementary file, and allows another search for the
// package.
func (l *links) shrink() {
	if l == nil {
		return
	}
	l.noPack = false
	if l.alt != nil {
		l.alt.Shrink(0)
	}
	l.held = 0
}

// count updates the number of heap bytes held by f.
func (l *links) count(f *splitFile) {
	n := f.file.Object.Footprint() + f.data.Footprint()
	l.held += n - f.held
	f.held = n
}

// enterSplit returns the unit that describes the functions of u. For a skeleton whose split unit
// can be opened, it returns the split unit, otherwise u. The caller must call leaveSplit after the
// lookup.
func (l *links) enterSplit(u *unit) *unit {
	if l == nil || !u.dwoName.ok() {
		return u
	}
	d := l.d
	h := u.half
	if h == nil || h.file != nil && h.file.data == nil {
		h = l.findHalf(u)
		u.half = h
	}
	if h.file == nil {
		return u
	}
	c := h.file.data
	c.continues(&d.budget)
	h.file.used = d.tick
	hu := c.unitIn(h.off, h.part)
	if hu == nil || hu.enc.addrSize != u.enc.addrSize || hu.dwoID != u.dwoID {
		c.trim()
		u.damaged("its split unit at %#x", h.off)
		u.half = &half{}
		return u
	}
	hu.used = d.tick
	hu.addrBase, hu.base = u.addrBase, u.base
	if hu.enc.version < 5 {
		hu.listBase = u.rangesBase
	}
	return hu
}

// leaveSplit ends a lookup in hu, the unit that enterSplit returned for u. It updates the count of
// heap bytes, and sets l.d.err to hu's error, if any, unless it is already set.
func (l *links) leaveSplit(u, hu *unit) {
	if hu == u {
		return
	}
	hu.d.count(hu)
	hu.d.trim()
	l.count(u.half.file)
	if l.d.err == nil {
		l.d.err = hu.d.firstErr(hu)
	}
}

// relocate sets the bases of a split unit. p has the offsets of the unit's contributions in a
// package. For a unit in a .dwo file, p is zero.
func (u *unit) relocate(p part) {
	u.strOffBase, _, u.rngBase = defaultBases(u.enc)
	u.strOffBase += p.strOffsets
	u.rngBase += p.rnglists
	if u.enc.version >= 5 {
		u.listBase = p.rnglists
	}
}

// findHalf looks for the split unit of a skeleton: in the package, if any, then in the skeleton's
// own .dwo file.
func (l *links) findHalf(u *unit) *half {
	d := l.d
	d.spend(openCost)
	if f := l.openPackage(); f != nil {
		if off, p, ok := f.find(u.dwoID); ok {
			return &half{f, off, p}
		}
	}
	name := string(d.text(u.stringOf(u.dwoName, secInfo)))
	dir := string(d.text(u.compDir))
	if l.Split == nil || name == "" || len(name)+len(dir) > maxPathBytes {
		return &half{}
	}
	key := dir + "\x00" + name
	if f := l.files[key]; f != nil { // a .dwo file may hold several units
		f.data.work = maxWork / 8
		if off, ok := f.data.unitWithID(u.dwoID); ok {
			return &half{file: f, off: off}
		}
	}
	f := &splitFile{key: key, used: d.tick}
	var off uint64
	file := l.Split(dir, name, func(o *object.File) bool {
		if f.data = l.newSplit(o); f.data == nil {
			return false
		}
		f.data.work = maxWork / 8
		var ok bool
		off, ok = f.data.unitWithID(u.dwoID)
		return ok
	})
	if file.Object == nil {
		return &half{}
	}
	f.file = file
	if old := l.files[key]; old != nil {
		l.close(old)
	}
	if len(l.files) >= maxSplitFiles {
		oldest := slices.MinFunc(slices.Collect(maps.Values(l.files)), func(a, b *splitFile) int {
			return cmp.Compare(a.used, b.used)
		})
		l.close(oldest)
	}
	if l.files == nil {
		l.files = make(map[string]*splitFile)
	}
	l.files[key] = f
	l.keyHeap += fileCost + int64(len(key))
	l.open++
	l.count(f)
	return &half{file: f, off: off}
}

// fileCost is the heap in bytes of an entry of links.files, without its key and its parsed units.
const fileCost = int64(unsafe.Sizeof(splitFile{})+unsafe.Sizeof(Data{})) + 64

// newSplit returns a Data for the split units of o, or nil if o has none or has another byte order.
func (l *links) newSplit(o *object.File) *Data {
	d := l.d
	if s, ok := o.Section(sectionNames[secInfo] + ".dwo"); !ok || s.Size == 0 || (o.Order == binary.BigEndian) != d.big {
		return nil
	}
	c := newData(sections{big: d.big, zeroCode: d.sec.zeroCode, load: o.Data, skeletons: &d.sec})
	c.names, c.detailed, c.meter = d.names, d.detailed, d.meter
	c.chooseInfo(o)
	return c
}

// chooseInfo selects the section .debug_info of o with the units of code. In an object file, GCC
// writes each type unit to a section of its own, also named .debug_info.
func (d *Data) chooseInfo(o *object.File) {
	name := d.sec.name(secInfo)
	d.sec.vars.unlinked = o
	for i, s := range o.Sections() {
		if s.Name != name {
			continue
		}
		data, err := o.DataOf(i)
		var u unit
		if _, ok := u.parseHeader(d, data, 0); ok && err == nil && u.isCompile() {
			d.sec.data[secInfo], d.sec.loaded[secInfo] = data, true
			return
		}
	}
}

func (l *links) openPackage() *splitFile {
	d := l.d
	if l.pack != nil || l.noPack || l.Package == nil {
		return l.pack
	}
	l.noPack = true
	file := l.Package()
	if file.Object == nil {
		return nil
	}
	c := l.newSplit(file.Object)
	if c == nil {
		file.Close()
		return nil
	}
	c.packaged = true
	f := &splitFile{data: c, file: file, used: d.tick}
	var ok bool
	if f.index, ok = parseIndex(cursor{buf: c.sec.get(secCUIndex), big: d.big}); !ok {
		d.damaged("the package's .debug_cu_index")
		file.Close()
		return nil
	}
	l.pack, l.noPack = f, false
	l.open++
	l.count(f)
	return f
}

// find returns the offset of the package's unit with this ID, and the unit's contributions.
func (f *splitFile) find(id uint64) (off uint64, p part, ok bool) {
	x, c := &f.index, f.data
	row := x.row(id)
	if row == 0 {
		return 0, p, false
	}
	off, size, ok := x.contribution(row, sectInfo)
	if !ok || size == 0 {
		return 0, p, false
	}
	p.abbrev, _, _ = x.contribution(row, sectAbbrev)
	p.strOffsets, _, _ = x.contribution(row, sectStrOffsets)
	if x.version >= 5 {
		p.rnglists, _, _ = x.contribution(row, sectRnglists)
	}
	// The index holds only the low 32 bits of an offset. In a larger section, the unit's ID selects
	// one of the possible offsets.
	n := uint64(len(c.sec.get(secInfo)))
	for c.work = maxWork / 8; off < n; off += 1 << 32 {
		if got, ok := c.idOf(off, p); ok && got == id {
			return off, p, true
		}
	}
	return 0, p, false
}

// A unitIndex finds the units of a package by their IDs (DWARF 5, 7.3.5), in place.
type unitIndex struct {
	version uint16
	big     bool
	columns []byte // 4 bytes each: the number of a section
	ids     []byte // 8 bytes for each slot
	rows    []byte // 4 bytes for each slot: the row, from 1; 0 for an empty slot
	offsets []byte // 4 bytes for each row and column
	sizes   []byte
}

func parseIndex(c cursor) (x unitIndex, ok bool) {
	x.big = c.big
	at := c
	if c.u32() == 2 { // GNU's, before DWARF 5
		x.version = 2
	} else {
		c = at
		x.version = c.u16()
		c.u16()
	}
	if x.version != 2 && x.version != 5 {
		return x, false
	}
	columns, units, slots := uint64(c.u32()), uint64(c.u32()), uint64(c.u32())
	x.ids = c.take(8 * slots)
	x.rows = c.take(4 * slots)
	x.columns = c.take(4 * columns)
	if c.bad || columns != 0 && units > uint64(c.left())/columns { // no product overflows
		return x, false
	}
	x.offsets = c.take(4 * units * columns)
	x.sizes = c.take(4 * units * columns)
	return x, !c.bad && slots&(slots-1) == 0
}

// row returns the number of a unit's row in the index. The first row has the number 1. The result
// is 0 if the package does not have the unit.
func (x *unitIndex) row(id uint64) uint32 {
	slots := uint64(len(x.rows) / 4)
	if slots == 0 {
		return 0
	}
	mask := slots - 1
	at, step := id&mask, id>>32&mask|1 // an odd step visits every slot
	for range min(slots, maxProbes) {
		row := load32(x.rows[4*at:], x.big)
		if row == 0 {
			return 0
		}
		if load64(x.ids[8*at:], x.big) == id {
			return row
		}
		at = (at + step) & mask
	}
	return 0
}

// contribution returns the offset and the size of a unit's part of a section. row is the number of
// the unit's row, as row returns it.
func (x *unitIndex) contribution(row uint32, sect uint32) (off, size uint64, ok bool) {
	columns := len(x.columns) / 4
	for i := range columns {
		if load32(x.columns[4*i:], x.big) == sect {
			at := (uint64(row)-1)*uint64(columns) + uint64(i)
			if at >= uint64(len(x.offsets))/4 {
				return 0, 0, false
			}
			return uint64(load32(x.offsets[4*at:], x.big)), uint64(load32(x.sizes[4*at:], x.big)), true
		}
	}
	return 0, 0, false
}

// SplitSections returns the names of the sections that lookups read from files of split units.
func SplitSections() []string {
	var names []string
	for id := range secCUIndex {
		switch id {
		case secAranges, secLine, secLineStr, secAddr, secRanges: // read from the linked file
		default:
			names = append(names, sectionNames[id]+".dwo")
		}
	}
	return names
}
