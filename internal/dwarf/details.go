package dwarf

// Details are the parts of a frame that only other symbolizers print.
type Details struct {
	Discriminator uint32 // tells apart the blocks of one line; 0: none
	Declared      Declaration
	Start         uint64 // DW_AT_low_pc of the function or call
	HasStart      bool   // Start is known
}

// A Declaration is the place at which a function or variable is declared.
type Declaration struct {
	File    string // as Frame.File; "" if unknown
	CompDir int    // as Frame.CompDir
	Dir     int    // as Frame.Dir
	Line    uint32 // 0: unknown
}

// WithDetails makes Lookup return the details of each frame, and Variable the declaration. It must
// come before the first lookup. Lookups then keep no rows of line tables, since rows have no
// discriminators.
func (d *Data) WithDetails() { d.detailed = true }

// details returns the details of the frame of an entry of hu, and the discriminator of the frame
// around it: that of the call.
func (u *unit) details(hu *unit, entry, discriminator uint32) (*Details, uint32) {
	v := &Details{Discriminator: discriminator, Declared: u.declaration(hu, entry)}
	var call uint32
	hu.attributesAt(entry, func(attr uint32, at value) {
		switch attr {
		case attrLowPC:
			v.Start, v.HasStart = hu.addrOf(at)
		case attrDiscriminator:
			call = clamp(at.u)
		}
	})
	return v, call
}

// declaration returns the declaration of an entry of hu, whose line table is u's. The file and the
// line may be in different entries, of those that the entry refers to.
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
	}
	v.Line = clamp(line.u)
	return v
}

// attributesAt calls visit with the attributes of an entry.
func (u *unit) attributesAt(entry uint32, visit func(attr uint32, v value)) {
	c := cursorAt(u.data, uint64(entry), u.d.big)
	code := c.uleb()
	a := u.abbrevs.get(code)
	if c.bad || code == 0 || a == nil {
		return
	}
	specs := u.abbrevs.attrs(a)
	if !u.d.spend(len(specs)) {
		return
	}
	for _, s := range specs {
		v := c.value(s.form, u.abbrevs.implicitOf(s), u.enc)
		if c.bad {
			return
		}
		visit(uint32(s.attr), v)
	}
}

// lineWithDetails returns the row of addr, which is in the sequence s, from stops, which it keeps.
// If no stops can be kept, it runs the program of the sequence.
func (u *unit) lineWithDetails(s sequence, addr uint64) lineHit {
	t := &u.lines
	if u.d.spend(t.programSteps()) {
		u.keepStops()
	}
	if t.huge = !t.lost && t.decoded; t.huge {
		return u.lineFromRows(addr)
	}
	t.lost, t.ragged = false, true
	return u.lineFromProgram(s, addr)
}
