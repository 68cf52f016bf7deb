package dwarf

import (
	"fmt"
	"sync"
	"unsafe"
)

// A unit is one contribution to .debug_info, parsed as far as lookups needed. Offsets of entries
// are relative to data.
type unit struct {
	d    *Data  // the Data that has the unit, or has borrowed it from a shelf
	data []byte // from the unit's first byte to its last
	off  uint64 // offset of data in .debug_info
	root uint32 // position of the root entry in data
	kind uint8  // DW_UT_* of version 5, 0 before
	enc  encoding

	abbrevOff uint64
	abbrevs   *abbrevTable

	// from the root entry
	lowPC      value
	highPC     value
	ranges     value
	base       uint64 // base address of range lists, from DW_AT_low_pc or DW_AT_entry_pc
	stmtList   value
	compDir    strRef
	addrBase   uint64
	strOffBase uint64
	rngBase    uint64
	listBase   uint64 // base of the offsets of range lists; 0 except in split units

	// for a skeleton, whose functions a split unit describes
	dwoName    value
	dwoID      uint64 // ID that the skeleton and its split unit share
	rangesBase uint64 // the split unit's listBase, before version 5
	half       *half  // the split unit; nil: not looked for yet

	// on a shelf, the reader that has borrowed the unit holds mu, which guards the fields below
	mu      sync.Mutex
	dropped bool // the unit was taken off the shelf

	used  uint64 // number of the lookup that last used the unit
	held  int64  // bytes of heap when last counted
	funcs functionTable
	lines lineTable
	err   error // the first damage found
}

// damaged records a fault of the unit. The unit's other parts stay in use.
func (u *unit) damaged(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf("dwarf: unit at %#x: %s: %w", u.off, fmt.Sprintf(format, args...), ErrDamaged)
	}
}

func (u *unit) footprint() int64 {
	n := int64(unsafe.Sizeof(*u)) + u.funcs.footprint() + u.lines.footprint()
	if u.half != nil {
		n += int64(unsafe.Sizeof(*u.half))
	}
	return n
}

// parseHeader reads the unit header at off (DWARF 5, 7.5.1). end is the offset of the next header,
// or 0 if unknown. ok is false if the header is not usable.
func (u *unit) parseHeader(d *Data, info []byte, off uint64) (end uint64, ok bool) {
	c := cursorAt(info, off, d.big)
	n, offSize := c.length()
	if c.bad || uint64(n) > maxUnitBytes-12 {
		return 0, false
	}
	c.buf = c.buf[:c.pos+n]
	end = uint64(len(c.buf))
	*u = unit{d: d, off: off, data: c.buf[off:]}
	u.enc.offSize = offSize
	u.enc.version = c.u16()
	switch v := u.enc.version; {
	case v >= 2 && v <= 4:
		u.abbrevOff = c.word(offSize)
		u.enc.addrSize = c.u8()
	case v == 5:
		u.kind = c.u8()
		u.enc.addrSize = c.u8()
		u.abbrevOff = c.word(offSize)
		switch u.kind {
		case unitSkeleton, unitSplit:
			u.dwoID = c.u64()
		case unitType, unitSplitType:
			c.take(8 + uint64(offSize))
		}
	default:
		return end, false
	}
	if c.bad || u.enc.addrSize != 4 && u.enc.addrSize != 8 {
		return end, false
	}
	u.root = uint32(uint64(c.pos) - off)
	return end, true
}

// isCompile reports whether the unit may describe code.
func (u *unit) isCompile() bool { return u.kind != unitType && u.kind != unitSplitType }

// parseRoot reads the attributes of the root entry. t must have the abbreviation of that entry.
func (u *unit) parseRoot(t *abbrevTable) bool {
	c := cursorAt(u.data, uint64(u.root), u.d.big)
	a := t.get(c.uleb())
	if c.bad || a == nil {
		return false
	}
	u.strOffBase, u.addrBase, u.rngBase = defaultBases(u.enc)
	var compDir, entryPC value
	if !u.d.spend(int(a.numSpecs)) {
		return false
	}
	specs := t.attrs(a)
	for range a.numSpecs {
		s := specs.next()
		v := c.value(s.form, s.implicit, u.enc)
		switch s.attr {
		case attrCompDir:
			compDir = v
		case attrStmtList:
			u.stmtList = v
		case attrLowPC:
			u.lowPC = v
		case attrHighPC:
			u.highPC = v
		case attrRanges:
			u.ranges = v
		case attrEntryPC:
			entryPC = v
		case attrStrOffsetsBase:
			u.strOffBase = v.u
		case attrAddrBase, attrGNUAddrBase:
			u.addrBase = v.u
		case attrRnglistsBase:
			u.rngBase = v.u
		case attrDwoName, attrGNUDwoName:
			u.dwoName = v
		case attrGNUDwoID:
			if u.enc.version < 5 {
				u.dwoID = v.u
			}
		case attrGNURangesBase:
			u.rangesBase = v.u
		}
	}
	// Indexed forms need the bases, which are read by now.
	u.compDir = u.stringOf(compDir, secInfo)
	if addr, ok := u.addrOf(u.lowPC); ok {
		u.base = addr
	} else if addr, ok := u.addrOf(entryPC); ok {
		u.base = addr
	}
	return !c.bad
}

// defaultBases returns the bases for a root entry that gives none: for each section, the end of the
// header at its beginning. Before DWARF 5, GNU's extensions have no such headers, and the bases are
// 0.
func defaultBases(e encoding) (strOff, addr, rng uint64) {
	switch {
	case e.version < 5:
		return 0, 0, 0
	case e.offSize == 8:
		return 16, 16, 20
	}
	return 8, 8, 12
}

func (u *unit) addrOf(v value) (uint64, bool) {
	switch {
	case v.form == formAddr:
		return v.u, true
	case v.form == formLLVMAddrx:
		addr, ok := u.indexedAddr(v.u & (1<<32 - 1))
		return addr + v.u>>32, ok
	case v.isAddr():
		return u.indexedAddr(v.u)
	}
	return 0, false
}

// indexedAddr returns entry i of the unit's part of .debug_addr.
func (u *unit) indexedAddr(i uint64) (uint64, bool) {
	b := u.d.sec.get(secAddr)
	if i >= uint64(len(b)) || u.addrBase > uint64(len(b)) {
		return 0, false
	}
	c := cursorAt(b, u.addrBase+i*uint64(u.enc.addrSize), u.d.big)
	addr := c.word(u.enc.addrSize)
	return addr, !c.bad
}

// stringOf returns the string of an attribute. home is the attribute's section.
func (u *unit) stringOf(v value, home section) strRef {
	d := u.d
	switch v.form {
	case formString:
		return strRef{v.u + u.homeBase(home), home, true}
	case formStrp:
		return strRef{v.u, secStr, true}
	case formLineStrp:
		return strRef{v.u, secLineStr, true}
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		b := d.sec.get(secStrOffsets)
		if v.u >= uint64(len(b)) || u.strOffBase > uint64(len(b)) {
			return strRef{}
		}
		c := cursorAt(b, u.strOffBase+v.u*uint64(u.enc.offSize), d.big)
		off := c.word(u.enc.offSize)
		return strRef{off, secStr, !c.bad}
	case formGNUStrpAlt, formStrpSup:
		return strRef{v.u, secAltStr, d.sec.alt != nil}
	}
	return strRef{}
}

// homeBase returns the offset in the section home at which a cursor's bytes begin. A cursor over a
// unit begins at the unit, and a cursor over a line table at the start of the section.
func (u *unit) homeBase(home section) uint64 {
	if home == secInfo {
		return u.off
	}
	return 0
}
