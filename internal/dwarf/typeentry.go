package dwarf

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// Tags, attributes and operations of DWARF that describe types and variables.
const (
	tagArrayType       = 0x01
	tagClassType       = 0x02
	tagEnumerationType = 0x04
	tagMember          = 0x0d
	tagPointerType     = 0x0f
	tagReferenceType   = 0x10
	tagStructureType   = 0x13
	tagSubroutineType  = 0x15
	tagTypedef         = 0x16
	tagUnionType       = 0x17
	tagVariant         = 0x19
	tagInheritance     = 0x1c
	tagSubrangeType    = 0x21
	tagConstType       = 0x26
	tagEnumerator      = 0x28
	tagPackedType      = 0x2d
	tagVariantPart     = 0x33
	tagVariable        = 0x34
	tagVolatileType    = 0x35
	tagRestrictType    = 0x37
	tagInterfaceType   = 0x38
	tagRvalueRefType   = 0x42
	tagTemplateAlias   = 0x43
	tagAtomicType      = 0x47
	tagImmutableType   = 0x4b

	attrLocation           = 0x02
	attrOrdering           = 0x09
	attrByteSize           = 0x0b
	attrBitOffset          = 0x0c
	attrBitSize            = 0x0d
	attrLanguage           = 0x13
	attrLowerBound         = 0x22
	attrBitStride          = 0x2e
	attrUpperBound         = 0x2f
	attrCount              = 0x37
	attrDataMemberLocation = 0x38
	attrDeclaration        = 0x3c
	attrType               = 0x49
	attrByteStride         = 0x51
	attrSignature          = 0x69
	attrDataBitOffset      = 0x6b

	sectTypes = 2 // a column of the index of a package, before version 5

	opAddr         = 0x03
	opConstu       = 0x10
	opPlus         = 0x22
	opPlusUconst   = 0x23
	opAddrx        = 0xa1
	opGNUAddrIndex = 0xfb
)

// A typeAt refers to the entry of a type, or of a part of a type such as a member. The zero value
// means no entry.
type typeAt struct {
	u     *unit
	entry uint32
}

// A typeEntry holds the attributes of a type, or of a part of a type, that lookups use.
type typeEntry struct {
	tag      uint16
	children bool
	next     int // position after the attributes

	name, linkage, typ, specified, origin, signature, sibling value

	byteSize, bitSize, byteStride, bitStride value
	lower, upper, count, ordering, language  value
	dataBitOffset, bitOffset                 value
	declaration                              bool
	place                                    value  // DW_AT_data_member_location, if it is a number
	placeExpr                                []byte // DW_AT_data_member_location, if it is an expression
	location                                 []byte
}

// A typeWalk reads types as far as one lookup needs. It keeps no types: hostile types cost only
// steps.
type typeWalk struct {
	left    int // steps left
	begun   int
	alt     *Data
	path    []byte
	tooLong bool // a limit was exceeded: no member is returned
	fortran bool
	rust    bool
}

func (v *variables) newTypeWalk() *typeWalk {
	d := v.d
	n := min(maxTypeWork, d.work)
	return &typeWalk{left: n, begun: n, alt: d.links.supplementary()}
}

// charge takes the steps that w has used from the budget of the lookup.
func (w *typeWalk) charge(d *Data) {
	d.work -= w.begun - w.left
	d.meter.steps += int64(w.begun - w.left)
}

func (w *typeWalk) spend(n int) bool {
	if w.left -= n; w.left < 0 {
		w.left = 0
		return false
	}
	return true
}

// read reads the entry at t. It returns false at the end of a list of children, and if the entry
// cannot be read.
func (w *typeWalk) read(t typeAt, e *typeEntry) bool {
	*e = typeEntry{}
	if t.u == nil {
		return false
	}
	c := cursorAt(t.u.data, uint64(t.entry), t.u.d.big)
	code := c.uleb()
	a := t.u.abbrevs.get(code)
	if c.bad || code == 0 || a == nil {
		return false
	}
	if !w.spend(1 + int(a.numSpecs)) {
		return false
	}
	e.tag, e.children = a.tag, a.children
	specs := t.u.abbrevs.attrs(a)
	for range a.numSpecs {
		s := specs.next()
		if block, ok := c.block(s.form); ok {
			switch s.attr {
			case attrLocation:
				e.location = block
			case attrDataMemberLocation:
				e.placeExpr = block
			case attrUpperBound:
				e.upper = value{form: s.form} // a bound exists, but is not fixed
			case attrCount:
				e.count = value{form: s.form}
			}
			continue
		}
		v := c.value(s.form, s.implicit, t.u.enc)
		if s.attr == attrDeclaration {
			e.declaration = v.u != 0
		} else if field := e.attribute(s.attr); field != nil {
			*field = v
		}
	}
	e.next = c.pos
	return !c.bad
}

// attribute returns the field for an attribute, or nil if e has no field for it.
func (e *typeEntry) attribute(attr uint16) *value {
	switch attr {
	case attrName:
		return &e.name
	case attrLinkageName, attrMIPSLinkageName:
		return &e.linkage
	case attrType:
		return &e.typ
	case attrSpecification:
		return &e.specified
	case attrAbstractOrigin:
		return &e.origin
	case attrSignature:
		return &e.signature
	case attrSibling:
		return &e.sibling
	case attrByteSize:
		return &e.byteSize
	case attrBitSize:
		return &e.bitSize
	case attrByteStride:
		return &e.byteStride
	case attrBitStride:
		return &e.bitStride
	case attrLowerBound:
		return &e.lower
	case attrUpperBound:
		return &e.upper
	case attrCount:
		return &e.count
	case attrOrdering:
		return &e.ordering
	case attrLanguage:
		return &e.language
	case attrDataBitOffset:
		return &e.dataBitOffset
	case attrBitOffset:
		return &e.bitOffset
	case attrDataMemberLocation:
		return &e.place
	}
	return nil
}

// children calls do for the direct children of e, the entry at t, until do returns false.
func (w *typeWalk) children(t typeAt, e *typeEntry, do func(child typeAt, e *typeEntry) bool) {
	if !e.children {
		return
	}
	child := typeAt{t.u, uint32(e.next)}
	for {
		var ce typeEntry
		if !w.read(child, &ce) || !do(child, &ce) {
			return
		}
		next := w.behind(child, &ce)
		if next <= int(child.entry) {
			return
		}
		child.entry = uint32(next)
	}
}

// behind returns the position after an entry and all entries below it. It returns -1 if the entries
// below are damaged, or too many for the steps left.
func (w *typeWalk) behind(t typeAt, e *typeEntry) int {
	if !e.children {
		return e.next
	}
	if to := e.sibling; to.ok() && to.u > uint64(e.next) && to.u <= uint64(len(t.u.data)) {
		switch to.form {
		case formRef1, formRef2, formRef4, formRef8, formRefUdata:
			return int(to.u)
		}
	}
	below := t.u.walkFrom(uint32(e.next), 0, leapTypes, w.left)
	below.depth = 1
	below.next()
	if !w.spend(w.left-below.left) || below.fault != "" {
		return -1
	}
	return below.pos
}

// text returns the string of an attribute of an entry in t's unit.
func (w *typeWalk) text(t typeAt, v value) []byte {
	if v.form == formString { // the string is in the unit itself
		if v.u >= uint64(len(t.u.data)) {
			return nil
		}
		b := t.u.data[v.u:]
		b = b[:min(len(b), maxNameBytes)]
		if n := bytes.IndexByte(b, 0); n > 0 {
			return b[:n:n]
		}
		return nil
	}
	return t.u.d.text(t.u.stringOf(v, secInfo))
}

// follow returns the entry that v refers to. v is an attribute of an entry in t's unit.
func (w *typeWalk) follow(t typeAt, v value) typeAt {
	switch {
	case !v.ok() || !w.spend(4):
		return typeAt{}
	case v.form == formRefSig8:
		return w.signedType(t.u.d, v.u)
	case v.isAlt():
		if w.alt == nil {
			return typeAt{}
		}
		u := w.alt.unitOf(v.u)
		if u == nil || v.u-u.off < uint64(u.root) {
			return typeAt{}
		}
		u.used = w.alt.tick
		return typeAt{u, uint32(v.u - u.off)}
	}
	u, entry := t.u.follow(v)
	if u == nil {
		return typeAt{}
	}
	return typeAt{u, entry}
}

// A signature locates the type unit with the signature sig: off is the offset of the unit.
type signature struct {
	sig, off uint64
	own      bool // the unit is in .debug_types
}

// signedType returns the type with the signature sig, from its type unit, or the zero typeAt if no
// unit has the signature.
func (w *typeWalk) signedType(d *Data, sig uint64) typeAt {
	if d.packaged {
		return typeIn(d.variables().packagedTypeUnit(sig))
	}
	v := d.variables()
	if !v.signedOK {
		v.signedOK = true
		v.signed = v.typeUnitList()
	}
	i := sort.Search(len(v.signed), func(i int) bool { return v.signed[i].sig >= sig })
	if i == len(v.signed) || v.signed[i].sig != sig {
		return typeAt{}
	}
	at := v.signed[i]
	if at.own {
		return typeIn(v.ownTypeUnit(at.off, part{}))
	}
	return typeIn(d.unitAt(at.off))
}

// typeIn returns the type of a type unit; the zero typeAt if u is not a type unit.
func typeIn(u *unit) typeAt {
	if u == nil || u.isCompile() {
		return typeAt{}
	}
	u.used = u.d.tick
	// The header ends with the signature and the offset of the type.
	c := cursorAt(u.data, uint64(u.root)-uint64(u.enc.offSize), u.d.big)
	entry := c.word(u.enc.offSize)
	if c.bad || entry < uint64(u.root) || entry >= uint64(len(u.data)) {
		return typeAt{}
	}
	return typeAt{u, uint32(entry)}
}

// packagedTypeUnit returns the type unit with a signature in the index of a package; nil if the
// index does not have it.
func (v *variables) packagedTypeUnit(sig uint64) *unit {
	d := v.d
	o := d.sec.vars.unlinked
	if o == nil {
		return nil
	}
	data, err := o.Data(".debug_tu_index")
	if err != nil {
		return nil
	}
	x, ok := parseIndex(cursor{buf: data, big: d.big})
	row := uint32(0)
	if ok {
		row = x.row(sig)
	}
	if row == 0 {
		return nil
	}
	var p part
	p.abbrev, _, _ = x.contribution(row, sectAbbrev)
	p.strOffsets, _, _ = x.contribution(row, sectStrOffsets)
	var u *unit
	if x.version >= 5 {
		if off, _, ok := x.contribution(row, sectInfo); ok {
			u = d.unitIn(off, p)
		}
	} else if off, _, ok := x.contribution(row, sectTypes); ok {
		u = v.ownTypeUnit(off, p)
	}
	if u == nil || u.isCompile() {
		return nil
	}
	c := cursorAt(u.data, uint64(u.root)-uint64(u.enc.offSize)-8, d.big)
	if got := c.u64(); c.bad || got != sig {
		return nil
	}
	return u
}

// typeUnitList returns the signatures of all type units, sorted. It reads all unit headers.
func (v *variables) typeUnitList() []signature {
	d := v.d
	var list []signature
	add := func(u *unit, off uint64, own bool) {
		c := cursorAt(u.data, uint64(u.root)-uint64(u.enc.offSize)-8, d.big)
		if sig := c.u64(); !c.bad && len(list) < maxTypeUnits {
			list = append(list, signature{sig, off, own})
		}
	}
	var u unit
	if !d.packaged {
		for _, off := range d.unitOffsets() {
			if _, ok := u.parseHeader(d, d.sec.get(secInfo), off); ok && !u.isCompile() && d.spend(1) {
				add(&u, off, false)
			}
		}
		types := v.typesSection()
		for off := uint64(0); off < uint64(len(types)) && d.spend(1); {
			end, ok := u.parseTypeHeader(d, types, off)
			if ok {
				add(&u, off, true)
			}
			if end <= off {
				break
			}
			off = end
		}
	}
	slices.SortStableFunc(list, func(a, b signature) int { return cmp.Compare(a.sig, b.sig) })
	return slices.Clip(slices.CompactFunc(list, func(a, b signature) bool { return a.sig == b.sig }))
}

// typesSection returns .debug_types. In an object file it joins all sections with type units, which
// may also be named .debug_info.
func (v *variables) typesSection() []byte {
	d := v.d
	o := d.sec.vars.unlinked
	if o == nil || d.packaged {
		return d.sec.get(secTypes)
	}
	if v.joined {
		return v.types
	}
	v.joined = true
	types, info := d.sec.name(secTypes), d.sec.name(secInfo)
	for i, s := range o.Sections() {
		if s.Name != types && s.Name != info {
			continue
		}
		data, err := o.DataOf(i)
		if err != nil || len(v.types)+len(data) > maxStaticInflate {
			continue
		}
		var u unit
		if _, ok := u.parseTypeHeader(d, data, 0); ok && (s.Name == types || u.enc.version >= 5) {
			v.types = append(v.types, data...)
		}
	}
	return v.types
}

// parseTypeHeader is parseHeader for a unit of .debug_types (DWARF 4, 7.5.1.2).
func (u *unit) parseTypeHeader(d *Data, types []byte, off uint64) (end uint64, ok bool) {
	end, ok = u.parseHeader(d, types, off)
	if !ok || u.enc.version != 4 {
		return end, ok && !u.isCompile()
	}
	c := cursorAt(u.data, uint64(u.root), d.big)
	c.take(8 + uint64(u.enc.offSize))
	u.kind, u.root = unitType, uint32(c.pos)
	return end, !c.bad
}

// ownTypeUnit is unitIn for a unit in .debug_types.
func (v *variables) ownTypeUnit(off uint64, p part) *unit {
	d := v.d
	if u, ok := v.typeUnits[off]; ok {
		return u
	}
	u := new(unit)
	if _, ok := u.parseTypeHeader(d, v.typesSection(), off); !ok {
		return nil
	}
	u.abbrevOff += p.abbrev
	u.abbrevs = d.abbrevsOf(u)
	if !u.parseRoot(u.abbrevs) {
		return nil
	}
	if d.sec.skeletons != nil {
		u.relocate(p)
	}
	if v.typeUnits == nil || len(v.typeUnits) >= maxTypeUnitsKept {
		for _, old := range v.typeUnits {
			v.held -= old.footprint()
		}
		v.typeUnits = make(map[uint64]*unit)
	}
	v.typeUnits[off] = u
	v.held += u.footprint()
	return u
}
