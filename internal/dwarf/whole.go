package dwarf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// An index on disk is made from a walk over all debug information. The result of the walk agrees
// with Lookup at every address.

const (
	stepsPerByte  = 32 // steps per byte that a walk over a unit may take: about 2 are needed
	maxTablesKept = 64 // abbreviation tables kept from unit to unit
)

// ErrNotWhole reports that a walk over all debug information is impossible. A part of the
// information is in another file or breaks a limit, or an unlinked file has several sections of
// code.
var ErrNotWhole = errors.New("the debug information cannot be read as a whole")

// A Stretch assigns the addresses [Lo,Hi) to the unit at the offset Unit.
type Stretch struct{ Lo, Hi, Unit uint64 }

// Stretches returns the addresses that units describe, in order. It loads all sections except
// .debug_types. It fails if a section cannot be loaded, if a table of units is damaged, or with
// ErrNotWhole.
func (d *Data) Stretches() ([]Stretch, error) {
	defer d.trim()
	d.load()
	d.begin()
	if d.listed == nil && len(d.sec.get(secAranges)) > 0 {
		d.listedLooks = coldLookups
		d.listedUnit(0)
	}
	if d.unlisted == nil {
		d.rootLooks = coldLookups
		d.unlistedUnit(0)
	}
	if d.sec.placed {
		return nil, fmt.Errorf("several sections have code at one address: %w", ErrNotWhole)
	}
	if d.tooMany {
		return nil, fmt.Errorf("more than %d ranges of units: %w", maxUnitRanges, ErrNotWhole)
	}
	if err := d.firstErr(nil); err != nil {
		return nil, err
	}
	all := make([]Stretch, 0, len(d.listed)+len(d.unlisted))
	next := 0
	for _, r := range d.unlisted { // listed ranges take precedence
		lo := r.lo
		for next < len(d.listed) && d.listed[next].hi <= lo {
			next++
		}
		for i := next; i < len(d.listed) && d.listed[i].lo < r.hi; i++ {
			if lo < d.listed[i].lo {
				all = append(all, Stretch{lo, d.listed[i].lo, r.unit})
			}
			lo = max(lo, d.listed[i].hi)
		}
		if lo < r.hi {
			all = append(all, Stretch{lo, r.hi, r.unit})
		}
	}
	for _, r := range d.listed {
		all = append(all, Stretch{r.lo, r.hi, r.unit})
	}
	slices.SortFunc(all, func(a, b Stretch) int { return cmp.Compare(a.Lo, b.Lo) })
	return all, nil
}

// load loads all sections except .debug_types: frames do not need it.
func (d *Data) load() {
	for id := range numSections {
		if id == secTypes {
			continue
		}
		d.sec.get(id)
		if d.sec.alt != nil && id < secAltInfo {
			d.sec.alt.get(id)
		}
	}
}

// Fork returns another reader of the same bytes, for another goroutine. It loads all sections of d
// except .debug_types; the file must stay open. The other reader opens no files.
func (d *Data) Fork() *Data {
	d.load()
	f := newData(d.sec)
	f.names, f.detailed = d.names, d.detailed
	f.sec.loaded[secTypes] = true // as empty: forks must not load sections
	if d.sec.alt != nil {
		f.links = &links{d: f, alt: newData(*d.sec.alt)}
		f.links.alt.meter = f.meter
		f.sec.alt = &f.links.alt.sec
	}
	return f
}

// A Piece assigns the code from Addr to the next Piece to a call and a line.
type Piece struct {
	Addr         uint64
	Call         int    // for [Unit.Call]; -1: none
	File         uint32 // for [Unit.File]
	Line, Column uint32
	HasLine      bool
}

// A Unit holds the calls and the files of the unit that a Walk has read.
type Unit struct {
	d *Data
	u *unit
}

// A Call is a function, or a call inlined into another call.
type Call struct {
	Name   uint64 // for [Data.Name]; 0: none
	Parent int    // the call that it was inlined into; -1: a function
	File   uint32 // source file of the call, for [Unit.File]
	Line   uint32
	Column uint32
}

// Call returns call i of the unit. i is the Call of a Piece or the Parent of another call.
func (w *Unit) Call(i int) Call {
	c := &w.u.funcs.calls[i]
	out := Call{Name: w.u.nameCall(c).number(), Parent: -1, File: c.file, Line: c.line, Column: c.column}
	if !c.function && c.parent != noParent {
		out.Parent = w.u.funcs.base(i) + int(c.parent)
	}
	return out
}

// Calls returns the number of calls.
func (w *Unit) Calls() int { return len(w.u.funcs.calls) }

// File returns the path of a file, with the ends of its parts as in [Frame]; "" for an unknown
// file.
func (w *Unit) File(i uint32) (path string, compDir, dir int) {
	p := w.u.path(i)
	return p.text, int(p.comp), int(p.dir)
}

// base returns the index in t.calls of the function that contains call i. The calls of a function
// begin with the function itself.
func (t *functionTable) base(i int) int {
	bases := t.rare.bases
	at, _ := slices.BinarySearchFunc(bases, uint32(i)+1, func(b, i uint32) int { return cmp.Compare(b, i) })
	return int(bases[at-1])
}

// Walk calls emit with the pieces of stretches of one unit, in order; each stretch begins with a
// piece. The pieces agree with Lookup. The Unit is valid until the next Walk. Walk fails if Lookup
// would fail at some address, or with ErrNotWhole.
func (d *Data) Walk(off uint64, stretches []Stretch, emit func(*Unit, Piece)) (*Unit, error) {
	defer d.trim()
	d.units, d.held = unitMap{}, 0
	if d.abbrevs.len() > maxTablesKept {
		d.abbrevs = abbrevMap{}
	}
	d.begin()
	u := d.unitAt(off)
	if u == nil {
		return nil, d.firstErr(nil)
	}
	d.work += min(stepsPerByte*len(u.data), maxWork*7)
	if u.dwoName.ok() {
		return nil, fmt.Errorf("unit at %#x is split: %w", off, ErrNotWhole)
	}
	if t := u.openLines(); t.present {
		if u.keepLines(); !t.decoded || t.huge || t.lost {
			return nil, cmp.Or(d.firstErr(u), fmt.Errorf("unit at %#x: line table of more than %d rows: %w", off, maxRows, ErrNotWhole))
		}
	}
	f := &u.funcs
	u.scan()
	u.scanAgain()
	for _, set := range f.sets() {
		if !set.sorted {
			set.sort()
		}
	}
	w := &Unit{d, u}
	k := walker{w: w, emit: emit, lines: lineWalk{t: &u.lines}}
	for _, s := range stretches {
		k.stretch(s.Lo, s.Hi)
	}
	if k.deep {
		return nil, fmt.Errorf("unit at %#x: calls inlined %d deep: %w", off, maxFrames, ErrNotWhole)
	}
	if d.work <= 0 {
		d.spend(1)
	}
	return w, d.firstErr(u)
}

// A walker goes through a unit in the order of addresses.
type walker struct {
	w     *Unit
	emit  func(*Unit, Piece)
	lines lineWalk
	main  int // number of clusters of functionTable.main that end at or below the current address
	rest  int
	deep  bool
}

func (k *walker) stretch(lo, hi uint64) {
	f := &k.w.u.funcs
	for lo < hi {
		fn, end := f.main.findUntil(&k.main, lo, hi, k.w.d)
		if fn < 0 && f.rest != nil {
			fn, end = f.rest.findUntil(&k.rest, lo, end, k.w.d)
		}
		k.function(fn, lo, end)
		lo = end
	}
}

// findUntil returns the function that find returns for lo, and an address, at most hi, up to which
// find returns the same function. *behind is the number of clusters that end at lo or below;
// findUntil updates it.
func (s *functionSet) findUntil(behind *int, lo, hi uint64, d *Data) (fn int, end uint64) {
	for *behind < len(s.clusters) && s.clusters[*behind].hi <= lo {
		*behind++
	}
	if *behind == len(s.clusters) || s.clusters[*behind].lo >= hi {
		return -1, hi
	}
	c := &s.clusters[*behind]
	if lo < c.lo {
		return -1, c.lo
	}
	spans := s.spans[c.first : c.first+c.n]
	if c.n == 1 {
		return int(spans[0].id), min(hi, c.hi)
	}
	i, end := pickUntil(spans, lo, min(hi, c.hi), d)
	if i < 0 {
		return -1, end
	}
	return int(spans[i].id), end
}

// pickUntil returns the index that pick returns for lo, and an address, at most hi, up to which
// pick returns the same index.
func pickUntil(spans []span, lo, hi uint64, d *Data) (i int, end uint64) {
	d.spend(len(spans) / 4)
	for j := range spans {
		s := &spans[j]
		if s.lo > lo {
			hi = min(hi, s.lo)
		}
		if s.hi > lo {
			hi = min(hi, s.hi)
		}
	}
	return pick(spans, lo), hi
}

// function emits the pieces of [lo,hi), which is in the function fn, or outside of functions if fn
// is -1.
func (k *walker) function(fn int, lo, hi uint64) {
	if fn < 0 {
		k.call(-1, lo, hi)
		return
	}
	u, d := k.w.u, k.w.d
	t := &u.funcs
	f := &t.list[fn]
	if f.coldPart {
		k.coldPart(lo, hi)
		return
	}
	if !f.parsed {
		f.parsed = true
		rare := t.rarely()
		rare.bases = append(rare.bases, uint32(len(t.calls)))
		u.parseCalls(f)
		if f.numCalls == 0 {
			rare.bases = rare.bases[:len(rare.bases)-1]
		}
	}
	if f.numCalls == 0 {
		k.call(-1, lo, hi)
		return
	}
	k.deep = k.deep || t.depth(f) >= maxFrames-1
	if f.layout != tidy {
		spans := t.spans[f.places : f.places+f.numPlaces]
		for lo < hi {
			i, end := pickUntil(spans, lo, hi, d)
			at := 0
			if i >= 0 {
				at = int(spans[i].id)
			}
			k.call(int(f.calls)+at, lo, end)
			lo = end
		}
		return
	}
	starts := t.starts[f.places : f.places+f.numPlaces]
	next := startsUntil(starts, f.base, lo)
	for lo < hi {
		at := 0
		if next > 0 && starts[next-1].call != noParent {
			at = int(starts[next-1].call)
		}
		end := hi
		if next < len(starts) {
			end = min(end, f.base+uint64(starts[next].lo))
		}
		k.call(int(f.calls)+at, lo, end)
		lo = end
		next++
	}
}

// coldPart emits the pieces of [lo,hi), which is in the cold part of another function.
func (k *walker) coldPart(lo, hi uint64) {
	u := k.w.u
	t := &u.funcs
	rare := t.rarely()
	if !rare.gathered {
		u.gather()
		for i := range t.list {
			k.deep = k.deep || t.depth(&t.list[i]) >= maxFrames-1
		}
	}
	for next := above(rare.all, lo); lo < hi; {
		call, end := -1, hi
		if next < len(rare.all) {
			end = min(end, rare.all[next].lo)
		}
		if next > 0 && lo < rare.all[next-1].hi {
			r := &rare.all[next-1]
			call = int(t.list[r.fn].calls + r.call)
			end = min(end, r.hi)
		}
		k.call(call, lo, end)
		lo = end
		if next < len(rare.all) && lo == rare.all[next].lo {
			next++
		}
	}
}

// depth returns the depth of inlined calls in f; 0 if f has too few calls to exceed maxFrames.
func (t *functionTable) depth(f *function) int {
	if f.numCalls < maxFrames-1 {
		return 0
	}
	deepest := 0
	depths := make([]int, f.numCalls)
	for i, c := range t.calls[f.calls : f.calls+f.numCalls] {
		if c.parent != noParent && int(c.parent) < i { // parents come first
			depths[i] = depths[c.parent] + 1
		}
		deepest = max(deepest, depths[i])
	}
	return deepest
}

// call emits a piece for each line in [lo,hi). All these addresses belong to one call, or to none
// if call is -1.
func (k *walker) call(call int, lo, hi uint64) {
	for lo < hi {
		hit, end := k.lines.at(lo, hi)
		k.emit(k.w, Piece{Addr: lo, Call: call, File: uint32(hit.file), Line: hit.line, Column: uint32(hit.column), HasLine: hit.ok})
		lo = end
	}
}

// A lineWalk goes through a line table in the order of addresses.
type lineWalk struct {
	t   *lineTable
	seq int // number of sequences that end at or below the current address
	row int // index of the sequence's first row above the current address
}

// at returns the row that lineFromRows returns for lo, and an address, at most hi, up to which
// lineFromRows returns the same row.
func (l *lineWalk) at(lo, hi uint64) (hit lineHit, end uint64) {
	seqs := l.t.seqs
	for l.seq < len(seqs) && seqs[l.seq].hi <= lo {
		l.seq++
		l.row = 0
	}
	if l.seq == len(seqs) {
		return lineHit{}, hi
	}
	s := &seqs[l.seq]
	if lo < s.lo {
		return lineHit{}, min(hi, s.lo, s.hi)
	}
	hi = min(hi, s.hi)
	rel := uint32(lo - s.lo)
	rows := l.t.rows[s.first : s.first+s.n]
	for l.row < len(rows) && rows[l.row].addr <= rel {
		l.row++
	}
	if l.row < len(rows) {
		hi = min(hi, s.lo+uint64(rows[l.row].addr))
	}
	if l.row == 0 {
		return lineHit{}, hi
	}
	r := &rows[l.row-1]
	return lineHit{r.line, r.file, r.column, true}, hi
}

// Size returns the bytes of the unit's entries and of its line program.
func (w *Unit) Size() int64 {
	p := &w.u.lines.program
	return int64(len(w.u.data) + len(p.buf) - p.pos)
}
