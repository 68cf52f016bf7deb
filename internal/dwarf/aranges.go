package dwarf

import (
	"iter"
	"slices"
)

// An addressIndex finds the unit of an address. The first lookups scan the ranges in
// .debug_aranges, and the ranges in the root entries of units that .debug_aranges does not list.
// After coldLookups scans, or after an inconclusive scan, sweep makes a sorted set of the ranges.
type addressIndex struct {
	d           *Data
	listed      rangeSet    // ranges in .debug_aranges, after the sweep
	roots       []unitRange // ranges of units that are not listed, before the sweep
	unlisted    rangeSet    // ranges of units that are not listed, after the sweep
	listedLooks int32
	rootLooks   int32
	tooMany     bool // .debug_aranges has too many ranges to keep
}

// unitFor returns the unit that describes addr, or nil.
func (x *addressIndex) unitFor(addr uint64) *unit {
	off := x.offsetFor(addr)
	if off == noUnit {
		return nil
	}
	return x.d.unitAt(off)
}

// offsetFor returns the offset of the unit that describes addr, or noUnit.
func (x *addressIndex) offsetFor(addr uint64) uint64 {
	off := x.listedUnit(addr)
	if off == noUnit {
		off = x.unlistedUnit(addr)
	}
	return off
}

// An arangeSet is one unit's part of .debug_aranges (DWARF 5, 6.1.2).
type arangeSet struct {
	unit  uint64 // offset in .debug_info
	pairs []byte // pairs of address and length
	size  uint8  // bytes of an address or length: 4 or 8
}

// nextArangeSet reads the set at c. ok is false if the set cannot be used. more is false after the
// last set, or if a set's length is damaged.
func nextArangeSet(c *cursor) (s arangeSet, ok, more bool) {
	if c.left() == 0 {
		return s, false, false
	}
	start := c.pos
	n, offSize := c.length()
	if c.bad {
		return s, false, false
	}
	set := cursor{buf: c.buf[:c.pos+n], pos: c.pos, big: c.big}
	c.pos += n
	version := set.u16()
	s.unit = set.word(offSize)
	s.size = set.u8()
	segSize := set.u8()
	if set.bad || version != 2 || segSize != 0 || s.size != 4 && s.size != 8 {
		return s, false, true
	}
	pair := 2 * int(s.size)
	if over := (set.pos - start) % pair; over != 0 {
		set.take(uint64(pair - over))
	}
	s.pairs = set.buf[set.pos:]
	return s, !set.bad, true
}

// nextListed is nextArangeSet within the budget of the current lookup.
func (x *addressIndex) nextListed(c *cursor) (s arangeSet, ok, more bool) {
	s, ok, more = nextArangeSet(c)
	if more && !x.d.spend(1+len(s.pairs)/arangeCost) {
		return arangeSet{}, false, false
	}
	return s, ok, more
}

func (s *arangeSet) pair(i int, big bool) (addr, length uint64) {
	if s.size == 8 {
		b := s.pairs[i*16 : i*16+16]
		return load64(b, big), load64(b[8:], big)
	}
	b := s.pairs[i*8 : i*8+8]
	return uint64(load32(b, big)), uint64(load32(b[4:], big))
}

func (s *arangeSet) len() int { return len(s.pairs) / (2 * int(s.size)) }

// listedUnit returns the unit of addr in .debug_aranges, or noUnit.
func (x *addressIndex) listedUnit(addr uint64) uint64 {
	d := x.d
	if x.listed == nil && d.shelf != nil {
		if v := d.shelf.listed.made.Load(); v != nil {
			x.listed = *v
		}
	}
	if x.listed == nil {
		unit, sure := noUnit, false
		if x.listedLooks < coldLookups || x.tooMany {
			x.listedLooks++
			unit, sure = x.coldListedUnit(addr)
		}
		if sure || x.tooMany {
			return unit
		}
		if d.shelf != nil {
			x.listed = d.shelf.listed.of(d, x.sweepListed)
		} else {
			x.listed = x.sweepListed()
		}
		if x.tooMany = x.listed == nil; x.tooMany {
			return x.listedUnit(addr)
		}
	}
	return x.listed.find(addr)
}

// sweepListed sweeps .debug_aranges. It returns nil if the section has too many ranges to keep.
func (x *addressIndex) sweepListed() []unitRange {
	var all []unitRange
	for r := range x.eachListed() {
		if all = append(all, r); len(all) > maxUnitRanges {
			return nil
		}
	}
	return sweep(all)
}

// fewNear is the initial capacity for ranges near an address. It suffices for most files: C++
// programs have about 5,000 such ranges.
const fewNear = 8 << 10

// coldListedUnit scans .debug_aranges for the unit of addr. Several units may claim an address: the
// linker keeps only one of several equal functions, but the tables list them all. sure is false if
// settle cannot decide between such units.
func (x *addressIndex) coldListedUnit(addr uint64) (unit uint64, sure bool) {
	d := x.d
	unit = noUnit
	claims := 0
	near := room(d.space().near, fewNear)
	c := cursor{buf: d.sec.get(secAranges), big: d.big}
	for {
		s, ok, more := x.nextListed(&c)
		if !more {
			break
		}
		if !ok {
			continue
		}
		before := len(near)
		near = s.appendNear(near, addr, d.big, d.sec.zeroCode)
		if s.unit != unit && slices.ContainsFunc(near[before:], func(r unitRange) bool { return addr < r.hi }) {
			unit = s.unit
			claims++
		}
	}
	d.space().near = near
	if claims < 2 {
		return unit, true
	}
	return settleNear(near, addr)
}

// appendNear appends the set's ranges that may matter for settle: see unitRange.near.
func (s *arangeSet) appendNear(dst []unitRange, addr uint64, big, zeroCode bool) []unitRange {
	if s.size == 8 && !big { // nearly always the case
		for b := s.pairs; len(b) >= 16; b = b[16:] {
			lo, n := load64(b, false), load64(b[8:16], false)
			if addr-lo < n+nearBytes || n >= 1<<63 {
				dst = appendIfNear(dst, s.unit, addr, lo, n, zeroCode)
			}
		}
		return dst
	}
	for i := range s.len() {
		lo, n := s.pair(i, big)
		dst = appendIfNear(dst, s.unit, addr, lo, n, zeroCode)
	}
	return dst
}

func appendIfNear(dst []unitRange, unit, addr, lo, n uint64, zeroCode bool) []unitRange {
	r, ok := listedRange(unit, lo, n, zeroCode)
	if ok && r.near(addr, nearBytes) && len(dst) < maxUnitRanges {
		dst = append(dst, r)
	}
	return dst
}

// listedRange returns the range of n bytes at lo. ok is false if the range is empty, or if it is at
// 0 and the file has no code there.
func listedRange(unit, lo, n uint64, zeroCode bool) (r unitRange, ok bool) {
	hi := lo + n
	if hi < lo {
		hi = ^uint64(0)
	}
	return unitRange{lo, hi, unit}, n > 0 && (lo != 0 || zeroCode)
}

func (x *addressIndex) eachListed() iter.Seq[unitRange] {
	d := x.d
	return func(yield func(unitRange) bool) {
		c := cursor{buf: d.sec.get(secAranges), big: d.big}
		for {
			s, ok, more := x.nextListed(&c)
			if !more {
				return
			}
			if !ok {
				continue
			}
			for i := range s.len() {
				lo, n := s.pair(i, d.big)
				if r, ok := listedRange(s.unit, lo, n, d.sec.zeroCode); ok && !yield(r) {
					return
				}
			}
		}
	}
}

// unlistedUnit returns the unit whose root entry covers addr, or noUnit. It searches the units that
// .debug_aranges does not list.
func (x *addressIndex) unlistedUnit(addr uint64) uint64 {
	d := x.d
	if x.unlisted == nil && d.shelf != nil {
		if v := d.shelf.unlisted.made.Load(); v != nil {
			x.unlisted, x.roots = *v, nil
		}
	}
	if x.roots == nil && x.unlisted == nil {
		if d.shelf != nil {
			x.roots = d.shelf.roots.of(d, x.readRoots)
		} else {
			x.roots = x.readRoots()
		}
	}
	if x.unlisted == nil {
		if x.rootLooks < coldLookups {
			x.rootLooks++
			if unit, sure := x.coldUnlistedUnit(addr); sure {
				return unit
			}
		}
		if s := d.shelf; s != nil {
			x.unlisted = s.unlisted.of(d, func() []unitRange { return sweep(slices.Clone(x.roots)) })
			s.roots.withdraw(s)
		} else {
			x.unlisted = sweep(x.roots)
		}
		x.roots = nil
	}
	return x.unlisted.find(addr)
}

func (x *addressIndex) coldUnlistedUnit(addr uint64) (unit uint64, sure bool) {
	d := x.d
	unit = noUnit
	claims := 0
	for i := range x.roots {
		if r := &x.roots[i]; r.lo <= addr && addr < r.hi && r.unit != unit {
			unit = r.unit
			claims++
		}
	}
	if claims < 2 {
		return unit, true
	}
	near := d.space().near[:0]
	for _, r := range x.roots {
		if r.near(addr, nearBytes) {
			near = append(near, r)
		}
	}
	d.space().near = near
	return settleNear(near, addr)
}

// readRoots returns the ranges in the root entries of the units that .debug_aranges does not list.
// These are few units, or all units if .debug_aranges is missing: by default, Clang does not write
// it. readRoots walks over all unit headers.
func (x *addressIndex) readRoots() []unitRange {
	d := x.d
	var mentioned []uint64
	c := cursor{buf: d.sec.get(secAranges), big: d.big}
	for {
		s, ok, more := x.nextListed(&c)
		if !more {
			break
		}
		if ok {
			mentioned = append(mentioned, s.unit)
		}
	}
	slices.Sort(mentioned)
	info, abbrev := d.sec.get(secInfo), d.sec.get(secAbbrev)
	type rootKey struct {
		abbrevKey
		code uint64
	}
	var last rootKey
	var u unit
	var spans []span
	all := []unitRange{}
	for _, off := range d.unitOffsets() {
		if _, found := slices.BinarySearch(mentioned, off); found || !d.spend(1) {
			continue
		}
		if _, ok := u.parseHeader(d, info, off); !ok || !u.isCompile() {
			continue
		}
		root := cursorAt(u.data, uint64(u.root), d.big)
		code := root.uleb()
		if root.bad || code == 0 {
			continue
		}
		// units may share a table of abbreviations
		if key := (rootKey{abbrevKey{u.abbrevOff, u.enc}, code}); key != last {
			last = key
			d.space().abbrevs.parse(cursorAt(abbrev, u.abbrevOff, d.big), u.enc, code)
			d.spend(d.space().abbrevs.tried)
		}
		if !u.parseRoot(&d.space().abbrevs) {
			continue
		}
		spans = u.appendPC(spans[:0], u.lowPC, u.highPC, u.ranges, 0)
		for _, s := range spans {
			all = append(all, unitRange{s.lo, s.hi, off})
		}
		if len(all) > maxUnitRanges {
			d.damaged("more than %d ranges of units", maxUnitRanges)
			break
		}
	}
	return slices.Clip(all)
}
