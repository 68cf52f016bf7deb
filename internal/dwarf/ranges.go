package dwarf

import "unsafe"

// A span is a range of addresses, hi exclusive. id is the index of its function or call; 0 for a
// unit.
type span struct {
	lo, hi uint64
	id     uint32
	order  uint32 // position among the spans of the unit or function, in the order of their entries
}

func sizeOf[T any](s []T) int64 {
	var t T
	return int64(cap(s)) * int64(unsafe.Sizeof(t))
}

// appendSpan appends [lo,hi) unless it is empty, the linker discarded it, or dst is full.
func (s *sections) appendSpan(dst []span, e encoding, lo, hi uint64, id uint32) []span {
	if lo >= hi || lo == 0 && !s.zeroCode || lo >= e.maxAddr()-1 || len(dst) >= maxRanges {
		return dst
	}
	return append(dst, span{lo, hi, id, uint32(len(dst))})
}

// appendPC appends the ranges of an entry: DW_AT_low_pc to DW_AT_high_pc if it has both, else its
// DW_AT_ranges.
func (u *unit) appendPC(dst []span, low, high, ranges value, id uint32) []span {
	if lo, ok := u.addrOf(low); ok && lo != u.enc.maxAddr() {
		if hi, ok := u.addrOf(high); ok {
			return u.d.sec.appendSpan(dst, u.enc, lo, hi, id)
		}
		if high.isConst() {
			hi := lo + high.u
			if hi < lo || hi > u.enc.maxAddr() {
				hi = u.enc.maxAddr()
			}
			return u.d.sec.appendSpan(dst, u.enc, lo, hi, id)
		}
	}
	switch {
	case !ranges.ok() || len(dst) >= maxRanges:
	case u.enc.version >= 5:
		dst = u.appendRnglist(dst, ranges, id)
	default:
		dst = u.appendRanges(dst, u.listBase+ranges.u, id)
	}
	return dst
}

// appendRanges appends a list of .debug_ranges (DWARF 4, 2.17.3).
func (u *unit) appendRanges(dst []span, off uint64, id uint32) []span {
	d := u.d
	c := cursorAt(d.sec.get(secRanges), off, d.big)
	base, top := u.base, u.enc.maxAddr()
	for d.spend(8) {
		lo, hi := c.word(u.enc.addrSize), c.word(u.enc.addrSize)
		switch {
		case c.bad:
			u.damaged("range list at %#x of .debug_ranges", off)
			return dst
		case lo == 0 && hi == 0:
			return dst
		case lo == top:
			base = hi
		case base < top-1 && lo != top-1:
			dst = d.sec.appendSpan(dst, u.enc, (base+lo)&top, (base+hi)&top, id)
		}
	}
	return dst
}

// appendRnglist appends a list of .debug_rnglists (DWARF 5, 7.25).
func (u *unit) appendRnglist(dst []span, v value, id uint32) []span {
	d := u.d
	b := d.sec.get(secRnglists)
	off := v.u + u.listBase
	if v.form == formRnglistx {
		if v.u >= uint64(len(b)) || u.rngBase > uint64(len(b)) {
			u.damaged("range list index %d", v.u)
			return dst
		}
		c := cursorAt(b, u.rngBase+v.u*uint64(u.enc.offSize), d.big)
		off = u.rngBase + c.word(u.enc.offSize)
		if c.bad || off < u.rngBase {
			u.damaged("range list index %d", v.u)
			return dst
		}
	}
	c := cursorAt(b, off, d.big)
	base, top := u.base, u.enc.maxAddr()
	size := u.enc.addrSize
	for d.spend(8) {
		var lo, hi uint64
		known := true
		kind := c.u8()
		switch kind {
		case rleEndOfList:
			if c.bad {
				u.damaged("range list at %#x of .debug_rnglists", off)
			}
			return dst
		case rleBaseAddressx:
			if base, known = u.indexedAddr(c.uleb()); !known {
				base = top
			}
			continue
		case rleBaseAddress:
			base = c.word(size)
			continue
		case rleStartxEndx:
			var known2 bool
			lo, known = u.indexedAddr(c.uleb())
			hi, known2 = u.indexedAddr(c.uleb())
			known = known && known2
		case rleStartxLength:
			lo, known = u.indexedAddr(c.uleb())
			hi = lo + c.uleb()
		case rleOffsetPair:
			lo, hi = c.uleb(), c.uleb()
			known = base < top-1
			lo, hi = (base+lo)&top, (base+hi)&top
		case rleStartEnd:
			lo, hi = c.word(size), c.word(size)
		case rleStartLength:
			lo = c.word(size)
			hi = lo + c.uleb()
		default:
			u.damaged("range list at %#x of .debug_rnglists: unknown entry kind %#x", off, kind)
			return dst
		}
		if known && !c.bad {
			dst = d.sec.appendSpan(dst, u.enc, lo, hi, id)
		}
	}
	return dst
}

// pick returns the index of the span that describes addr, or -1. spans are in the order of their
// entries in the unit.
//
// LLVM keeps a map from the start of a range to its end and entry, and adds the spans in this
// order. A span splits the range around its start. So later, deeper entries win. But a later range
// that starts lower does not replace an earlier range inside it. key and end are the start and end
// of the map's entry with the highest start not above addr.
func pick(spans []span, addr uint64) int {
	best := -1
	var key, end uint64
	for i := range spans {
		s := &spans[i]
		if s.lo > addr || s.lo < key {
			continue
		}
		switch {
		case addr < s.hi:
			key, end, best = s.lo, s.hi, i
		case s.lo < end && s.hi < end: // splits the entry: the part after s remains
			key = s.hi
		default:
			key, end, best = s.lo, s.hi, -1
		}
	}
	return best
}
