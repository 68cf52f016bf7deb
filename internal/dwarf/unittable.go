package dwarf

// A unitTable has the parsed units and abbreviations of a file, by offset.
type unitTable struct {
	d       *Data
	units   unitMap
	abbrevs abbrevMap
	held    int64 // bytes of heap of units and abbrevs
	offsets []uint64

	walked   bool // offsets is set
	packaged bool // these are the split units of a package
}

// unitAt returns the parsed unit whose header is at off, or nil if the header is damaged. It
// records that damage in d.err.
func (t *unitTable) unitAt(off uint64) *unit { return t.unitIn(off, part{}) }

// unitIn is unitAt for a unit in a package, with contributions at the offsets in p.
func (t *unitTable) unitIn(off uint64, p part) *unit {
	if u := t.units.get(off); u != nil {
		return u
	}
	u := t.parseUnit(off, p)
	if u == nil {
		return nil
	}
	t.units.put(u)
	t.held += u.footprint()
	u.held = u.footprint()
	return u
}

func (t *unitTable) parseUnit(off uint64, p part) *unit {
	d := t.d
	u := new(unit)
	_, ok := u.parseHeader(d, d.sec.get(secInfo), off)
	if !ok {
		d.damaged("unit at %#x: header", off)
		return nil
	}
	u.abbrevOff += p.abbrev
	u.abbrevs = t.abbrevsOf(u)
	if u.abbrevs.broken {
		u.damaged("abbreviations at %#x", u.abbrevOff)
	}
	if !u.parseRoot(u.abbrevs) {
		u.damaged("root entry")
	}
	if d.sec.skeletons != nil {
		u.relocate(p)
	}
	return u
}

// count updates the number of bytes held by d after more of u was parsed. If d has borrowed u from
// a shelf, count updates the shelf's number instead.
func (t *unitTable) count(u *unit) {
	d := t.d
	n := u.footprint()
	if d.shelf != nil && d.lent[u.off] == u {
		if !u.dropped {
			d.shelf.held.Add(n - u.held)
		}
	} else {
		t.held += n - u.held
	}
	u.held = n
}

type abbrevKey struct {
	off uint64
	enc encoding
}

func (t *unitTable) abbrevsOf(u *unit) *abbrevTable {
	d := t.d
	key := abbrevKey{u.abbrevOff, u.enc}
	if a := t.abbrevs.get(key); a != nil {
		return a
	}
	if d.shelf != nil {
		if a := d.shelf.abbrevsOf(key); a != nil {
			return a
		}
	}
	scratch := &d.space().abbrevs
	scratch.parse(cursorAt(d.sec.get(secAbbrev), u.abbrevOff, d.big), u.enc, 0)
	a := scratch.clone()
	a.off = key.off
	d.spend(8 * a.tried) // this also bounds the memory that the tables of one lookup take
	if d.shelf != nil {
		return d.shelf.putAbbrevs(key, a)
	}
	t.abbrevs.put(a)
	t.held += a.footprint()
	return a
}

// unitOf returns the unit that holds an offset of .debug_info. It returns nil if no unit does, or
// in a package.
func (t *unitTable) unitOf(off uint64) *unit {
	if t.packaged { // the base of the offsets is not known
		return nil
	}
	offs := t.unitOffsets()
	lo, hi := 0, len(offs)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); offs[m] > off {
			hi = m
		} else {
			lo = m + 1
		}
	}
	if lo == 0 {
		return nil
	}
	u := t.unitAt(offs[lo-1])
	if u == nil || off-u.off >= uint64(len(u.data)) {
		return nil
	}
	return u
}

func (t *unitTable) unitOffsets() []uint64 {
	d := t.d
	if !t.walked {
		t.walked = true
		if d.shelf != nil {
			t.offsets = d.shelf.offsets.of(d, t.readOffsets)
		} else {
			t.offsets = t.readOffsets()
		}
	}
	return t.offsets
}

func (t *unitTable) readOffsets() (offsets []uint64) {
	d := t.d
	info := d.sec.get(secInfo)
	for off := uint64(0); off < uint64(len(info)) && d.spend(1); {
		var u unit
		end, _ := u.parseHeader(d, info, off)
		if end == 0 {
			d.damaged("unit at %#x: header", off)
			break
		}
		if len(offsets) == maxUnits {
			d.damaged("more than %d units", maxUnits)
			break
		}
		offsets = append(offsets, off)
		off = end
	}
	return offsets
}

func (t *unitTable) unitWithID(id uint64) (off uint64, ok bool) {
	d := t.d
	defer d.trim()
	for _, off := range t.unitOffsets() {
		if got, ok := t.idOf(off, part{}); ok && got == id {
			return off, true
		}
	}
	return 0, false
}

// idOf returns the ID of the split unit at off. ok is false if the unit is not a split unit.
func (t *unitTable) idOf(off uint64, p part) (id uint64, ok bool) {
	d := t.d
	var u unit
	if _, ok := u.parseHeader(d, d.sec.get(secInfo), off); !ok || !u.isCompile() || !d.spend(1) {
		return 0, false
	}
	if u.enc.version >= 5 {
		return u.dwoID, u.kind == unitSplit
	}
	root := cursorAt(u.data, uint64(u.root), d.big)
	code := root.uleb()
	if root.bad || code == 0 {
		return 0, false
	}
	d.space().abbrevs.parse(cursorAt(d.sec.get(secAbbrev), u.abbrevOff+p.abbrev, d.big), u.enc, code)
	return u.dwoID, d.spend(d.space().abbrevs.tried) && u.parseRoot(&d.space().abbrevs) && u.dwoID != 0
}
