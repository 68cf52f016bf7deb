package dwarf

import (
	"cmp"
	"slices"
	"unsafe"
)

// Details are the parts of a frame that only the formats of other symbolizers show.
type Details struct {
	Discriminator uint32 // distinguishes the blocks of code of one line; 0: none
	Declared      Declaration
	Start         uint64 // DW_AT_low_pc of the function or call
	HasStart      bool   // Start is known

	First  uint64 // start of the first range in the order of debug information; 0 if unknown
	Entry  uint64 // offset in .debug_info of the function or call, plus 1; 0: no function is known
	Linker bool   // Name is the symbol's name: a linkage name, or a plain name as in C
	Split  bool   // the function is in a split unit
	// DW_AT_comp_dir of the unit, if File is relative to that directory and begins with directory 0
	// of the line table; otherwise empty. Only DWARF 5 has such files
	Within string
}

// A Declaration is the place where a function or variable is declared.
type Declaration struct {
	File    string // as Frame.File; "" if unknown
	CompDir int    // as Frame.CompDir
	Dir     int    // as Frame.Dir
	Line    uint32 // 0: unknown
	Within  string // as Details.Within
}

// WithDetails makes Lookup return the details of each frame, and Variable the declaration. It must
// come before the first lookup.
func (d *Data) WithDetails() { d.detailed = true }

// details returns the Details of the frame for an entry in hu. discriminator is the discriminator
// of that frame. The second result is the discriminator of the call that the entry describes, for
// the caller's frame.
func (u *unit) details(hu *unit, entry, discriminator uint32) (*Details, uint32) {
	v := &Details{Discriminator: discriminator, Declared: u.declaration(hu, entry), Entry: hu.off + uint64(entry) + 1}
	var call uint32
	hu.attributesAt(entry, func(attr uint32, at value) {
		switch attr {
		case attrLowPC:
			v.Start, v.HasStart = hu.addrOf(at)
			v.First = v.Start
		case attrRanges:
			if spans := hu.appendPC(nil, value{}, value{}, at, 0); len(spans) > 0 && !v.HasStart {
				v.First = spans[0].lo
			}
		case attrDiscriminator:
			call = clamp(at.u)
		}
	})
	return v, call
}

// within returns Details.Within for a file of u.
func (u *unit) within(file uint32) string {
	if !u.path(file).loose {
		return ""
	}
	return string(u.d.text(u.compDir))
}

// isLinkerName reports whether the plain name of an entry of u is also the name of its symbol. This
// is true if the language of the unit that has the name does not mangle names. The codes of
// languages are from DWARF 5, 7.12.
func (u *unit) isLinkerName(entry uint32) bool {
	for range maxChain {
		named := false
		var next, origin value
		u.attributesAt(entry, func(attr uint32, at value) {
			switch attr {
			case attrName:
				named = true
			case attrSpecification:
				next = at
			case attrAbstractOrigin:
				origin = at
			}
		})
		if !next.ok() {
			next = origin
		}
		if named || !next.ok() || next.isAlt() {
			break
		}
		if u, entry = u.follow(next); u == nil {
			return false
		}
	}
	language := uint64(0)
	u.attributesAt(u.root, func(attr uint32, at value) {
		if attr == attrLanguage {
			language = at.u
		}
	})
	switch language {
	case 0x01, 0x02, 0x05, 0x06, 0x07, 0x09, 0x0c, 0x0f, 0x12, 0x1d: // C, Cobol, Fortran 77, Pascal, PL/I, UPC
		return true
	case 0x8001, 0x8765: // DW_LANG_Mips_Assembler, which GNU as uses on all machines; Upc
		return true
	}
	return false
}

// declaration returns the declaration of an entry of hu, whose line table is u's. File and line may
// be in this entry, or in entries that it refers to.
func (u *unit) declaration(hu *unit, entry uint32) (v Declaration) {
	var file, line value
	lines := u
	for range maxChain {
		var specified, origin value
		hu.attributesAt(entry, func(attr uint32, at value) {
			switch {
			case attr == attrDeclFile && !file.ok():
				file = at
			case attr == attrDeclLine && !line.ok():
				line = at
			case attr == attrSpecification:
				specified = at
			case attr == attrAbstractOrigin:
				origin = at
			}
		})
		if !specified.ok() {
			specified = origin
		}
		if file.ok() && line.ok() || !specified.ok() || specified.isAlt() {
			break
		}
		next, at := hu.follow(specified)
		if next == nil {
			break
		}
		if next != hu && !file.ok() {
			lines = next
		}
		hu, entry = next, at
	}
	if file.ok() {
		p := lines.path(clamp(file.u))
		v.File, v.CompDir, v.Dir = p.text, int(p.comp), int(p.dir)
		v.Within = lines.within(clamp(file.u))
	}
	v.Line = clamp(line.u)
	return v
}

func (u *unit) attributesAt(entry uint32, visit func(attr uint32, v value)) {
	c := cursorAt(u.data, uint64(entry), u.d.big)
	code := c.uleb()
	a := u.abbrevs.get(code)
	if c.bad || code == 0 || a == nil {
		return
	}
	if !u.d.spend(int(a.numSpecs)) {
		return
	}
	specs := u.abbrevs.attrs(a)
	for range a.numSpecs {
		s := specs.next()
		v := c.value(s.form, s.implicit, u.enc)
		if c.bad {
			return
		}
		visit(uint32(s.attr), v)
	}
}

// A discriminatorTable has the discriminators of a line table. It is separate from the table's
// rows, since most rows have no discriminator, and most users need none.
type discriminatorTable struct {
	runs uint8
	kept bool
	rows []lineRow // like rows of a lineTable, with the discriminator in place of the line
	seqs []sequence
}

func (t *discriminatorTable) footprint() int64 {
	if t == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*t)) + sizeOf(t.rows) + sizeOf(t.seqs)
}

// discriminator returns the discriminator of the row of addr. The first calls run the whole program
// for one address, as the first lookups of lines do. Later calls use a table.
func (u *unit) discriminator(row lineHit, addr uint64) uint32 {
	if !row.ok {
		return 0
	}
	if u.lines.discriminators == nil {
		u.lines.discriminators = new(discriminatorTable)
	}
	t := u.lines.discriminators
	if !t.kept {
		if t.runs++; t.runs <= coldLineLookups || !u.mayKeep() {
			t.runs = min(t.runs, coldLineLookups+1)
			return u.discriminatorOnce(addr)
		}
		u.keepDiscriminators()
	}
	s := sequenceAt(t.seqs, addr)
	if s == nil {
		return 0
	}
	if r := s.row(t.rows, addr); r != nil {
		return r.line
	}
	return 0
}

// keepDiscriminators fills the table. The table stays empty if it would have too many rows.
func (u *unit) keepDiscriminators() {
	t := u.lines.discriminators
	t.kept = true
	var m lineRun
	m.begin(u.d, u)
	m.discriminating = true
	rows, seqs, ok := m.collect(nil, nil)
	if !ok {
		u.damaged("line table at %#x: more than %d discriminators", u.stmtList.u, maxRows)
		return
	}
	slices.SortStableFunc(seqs, func(a, b sequence) int { return cmp.Compare(a.hi, b.hi) })
	t.rows, t.seqs = slices.Clone(rows), slices.Clone(seqs)
}

// discriminatorOnce runs the line program and returns the discriminator of addr. It uses the
// sequence with the lowest end above addr, and there the last row with the highest address not
// above addr.
func (u *unit) discriminatorOnce(addr uint64) (best uint32) {
	if !u.d.spend(u.lines.programSteps()) {
		return 0
	}
	var m lineRun
	m.begin(u.d, u)
	m.discriminating, m.top = true, addr
	for end := ^uint64(0); m.running(); {
		var near uint32
		var nearPC uint64
		for m.next() {
			if m.pc >= nearPC {
				near, nearPC = m.discriminator, m.pc
			}
		}
		if m.lo < m.hi && m.hi > addr && m.hi < end {
			best, end = near, m.hi
		}
	}
	return best
}
