package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// A set is one unit's part of .debug_aranges (DWARF 5, 6.1.2).
type arangeSet struct {
	unit  uint64 // offset in .debug_info
	pairs []byte // of address and length
	size  uint8  // bytes of each
}

// nextArangeSet reads the set at c. ok is false where it cannot be used; more is false behind the last.
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

// pair returns the i-th range.
func (s *arangeSet) pair(i int, big bool) (addr, length uint64) {
	if s.size == 8 {
		b := s.pairs[i*16 : i*16+16]
		return load64(b, big), load64(b[8:], big)
	}
	b := s.pairs[i*8 : i*8+8]
	return uint64(load32(b, big)), uint64(load32(b[4:], big))
}

func (s *arangeSet) len() int { return len(s.pairs) / (2 * int(s.size)) }

// A unitRange says that [lo,hi) belongs to the unit at an offset of .debug_info.
type unitRange struct {
	lo, hi uint64
	unit   uint64
}

const noUnit = ^uint64(0)

// coldUnit finds the unit of addr by one linear look at .debug_aranges. sure is false when several units claim the address.
func (d *Data) coldUnit(addr uint64) (unit uint64, sure bool) {
	unit = noUnit
	if addr == 0 && !d.sec.zeroCode {
		return unit, true
	}
	c := cursor{buf: d.sec.get(secAranges), big: d.big}
	for d.spend(1) {
		s, ok, more := nextArangeSet(&c)
		if !more {
			break
		}
		if !ok || !s.mayHold(addr, d.big, d.sec.zeroCode) || s.unit == unit {
			continue
		}
		if unit != noUnit {
			return noUnit, false
		}
		unit = s.unit
	}
	return unit, true
}

// mayHold reports whether a range of the set covers addr.
func (s *arangeSet) mayHold(addr uint64, big, zeroCode bool) bool {
	if s.size == 8 && !big { // nearly always
		for b := s.pairs; len(b) >= 16; b = b[16:] {
			lo := load64(b, false)
			if addr-lo < load64(b[8:16], false) && (lo != 0 || zeroCode) {
				return true
			}
		}
		return false
	}
	for i := range s.len() {
		lo, n := s.pair(i, big)
		if addr-lo < n && (lo != 0 || zeroCode) {
			return true
		}
	}
	return false
}

// A rangeSet finds the unit of an address among ranges that do not overlap, sorted.
type rangeSet []unitRange

func (r rangeSet) find(addr uint64) uint64 {
	i := sort.Search(len(r), func(i int) bool { return r[i].lo > addr })
	if i == 0 || addr >= r[i-1].hi {
		return noUnit
	}
	return r[i-1].unit
}

// warmUnits sorts all of .debug_aranges.
func (d *Data) warmUnits() rangeSet {
	if d.listed != nil {
		return d.listed
	}
	var all []unitRange
	c := cursor{buf: d.sec.get(secAranges), big: d.big}
	for {
		s, ok, more := nextArangeSet(&c)
		if !more {
			break
		}
		if !ok {
			continue
		}
		for i := range s.len() {
			lo, n := s.pair(i, d.big)
			hi := lo + n
			if hi < lo {
				hi = noUnit
			}
			if n > 0 && (lo != 0 || d.sec.zeroCode) {
				all = append(all, unitRange{lo, hi, s.unit})
			}
		}
	}
	d.listed = sweep(all)
	return d.listed
}

// unlistedUnits returns the ranges of the units that .debug_aranges does not mention, as their root entries tell them.
// They are few, or there is no such section (clang writes none); then this walks over all unit headers, once.
func (d *Data) unlistedUnits() rangeSet {
	if d.unlisted != nil {
		return d.unlisted
	}
	var mentioned []uint64
	c := cursor{buf: d.sec.get(secAranges), big: d.big}
	for {
		s, ok, more := nextArangeSet(&c)
		if !more {
			break
		}
		if ok {
			mentioned = append(mentioned, s.unit)
		}
	}
	slices.Sort(mentioned)
	info, abbrev := d.sec.get(secInfo), d.sec.get(secAbbrev)
	var spans []span
	var all []unitRange
	for _, off := range d.unitOffsets() {
		if _, found := slices.BinarySearch(mentioned, off); found || !d.spend(1) {
			continue
		}
		u := new(unit)
		if _, ok := parseHeader(u, info, off, d.big); !ok || !u.isCompile() {
			continue
		}
		root := cursorAt(u.data, uint64(u.root), d.big)
		code := root.uleb()
		if root.bad || code == 0 {
			continue
		}
		t, known := d.abbrevs[abbrevKey{u.abbrevOff, u.enc}]
		if !known {
			t = parseAbbrevs(cursorAt(abbrev, u.abbrevOff, d.big), u.enc, code)
			d.spend(t.tried)
		}
		if !d.parseRoot(u, t) {
			continue
		}
		spans = d.appendPC(spans[:0], u, u.lowPC, u.highPC, u.ranges, 0)
		for _, s := range spans {
			all = append(all, unitRange{s.lo, s.hi, off})
		}
		if len(all) > maxRanges {
			d.damaged("more than %d ranges of units", maxRanges)
			break
		}
	}
	d.unlisted = sweep(all)
	return d.unlisted
}

// sweep makes the ranges disjoint as LLVM does. It passes over all starts and ends in order: what lies between two of them belongs to
// the unit of the stretch just before when that is still among those that claim it, else to the first of them in .debug_info.
func sweep(all []unitRange) rangeSet {
	out := make(rangeSet, 0, len(all))
	slices.SortFunc(all, func(a, b unitRange) int { return cmp.Compare(a.lo, b.lo) })
	disjoint := true
	for i := 1; i < len(all) && disjoint; i++ {
		disjoint = all[i-1].hi <= all[i].lo
	}
	if disjoint {
		for _, r := range all {
			if n := len(out); n > 0 && out[n-1].hi == r.lo && out[n-1].unit == r.unit {
				out[n-1].hi = r.hi
				continue
			}
			out = append(out, r)
		}
		return slices.Clip(out)
	}
	type end struct {
		addr, unit uint64
		start      bool
	}
	ends := make([]end, 0, 2*len(all))
	for _, r := range all {
		ends = append(ends, end{r.lo, r.unit, true}, end{r.hi, r.unit, false})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.addr, b.addr) })
	claims := make(map[uint64]int) // how many ranges of a unit claim the present stretch
	var first minHeap              // the claiming units; those that no longer claim are removed when they come first
	live := 0
	prev := noUnit
	for _, e := range ends {
		if prev < e.addr && live > 0 {
			for claims[first[0]] == 0 {
				first.pop()
			}
			if n := len(out); n > 0 && out[n-1].hi == prev && claims[out[n-1].unit] > 0 {
				out[n-1].hi = e.addr
			} else {
				out = append(out, unitRange{prev, e.addr, first[0]})
			}
		}
		if e.start {
			live++
			if claims[e.unit]++; claims[e.unit] == 1 {
				first.push(e.unit)
			}
		} else {
			live--
			claims[e.unit]--
		}
		prev = e.addr
	}
	return slices.Clip(out)
}

// A minHeap holds its smallest element first.
type minHeap []uint64

func (h *minHeap) push(v uint64) {
	s := append(*h, v)
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
	*h = s
}

func (h *minHeap) pop() {
	s := *h
	n := len(s) - 1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		least := i
		for _, kid := range [2]int{2*i + 1, 2*i + 2} {
			if kid < n && s[kid] < s[least] {
				least = kid
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
}
