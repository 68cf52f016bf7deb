package dwarf

import "bytes"

// text returns the bytes of a string without its NUL, or nil if it is missing or empty. They alias
// the section.
func (d *Data) text(s strRef) []byte {
	if !s.ok {
		return nil
	}
	b := d.sec.get(s.sec)
	if s.off >= uint64(len(b)) {
		return nil
	}
	b = b[s.off:]
	b = b[:min(len(b), maxNameBytes)]
	n := bytes.IndexByte(b, 0)
	if n <= 0 {
		return nil
	}
	return b[:n:n]
}

// LazyNames makes Lookup set Frame.Ref to a number that identifies the name, if possible, instead
// of setting the name. Callers can then read each name only once, by Name.
func (d *Data) LazyNames() { d.lazyNames = true }

// Name returns the name for a Frame's Ref; nil if ref is 0 or not valid.
func (d *Data) Name(ref uint64) []byte {
	if ref == 0 || section(ref>>refBits) >= numSections {
		return nil
	}
	return d.text(strRef{ref&(1<<refBits-1) - 1, section(ref >> refBits), true})
}

// refBits is the number of low bits of a name's number that hold the name's offset plus one. The
// higher bits hold the name's section.
const refBits = 56

// number returns a number that identifies the string in its file; 0 for no string.
func (s strRef) number() uint64 {
	if !s.ok || s.off >= 1<<refBits-1 {
		return 0
	}
	return uint64(s.sec)<<refBits | (s.off + 1)
}

// nameCall reads the name of a call, on first use, and returns its position.
func (u *unit) nameCall(c *call) strRef {
	if c.state == unread {
		name, linkage := u.entryName(uint32(c.name), u.d.names == AllDeclared || u.d.names == InlinedDeclared && !c.function)
		u.d.read += nameBytes
		c.name, c.section, c.state = name.off, name.sec, nameless
		switch {
		case name.ok && linkage:
			c.state = linkageName
		case name.ok:
			c.state = plainName
		}
	}
	return strRef{c.name, c.section, c.state > nameless}
}

// entryName returns the linkage name of the entry, or of the first entry with a linkage name among
// the entries that it refers to. If there is none, or if declared is set, it returns the first
// plain name.
func (u *unit) entryName(entry uint32, declared bool) (name strRef, linkage bool) {
	d := u.d
	for range maxChain {
		c := cursorAt(u.data, uint64(entry), d.big)
		code := c.uleb()
		a := u.abbrevs.get(code)
		if c.bad || code == 0 || a == nil {
			break
		}
		e := u.readEntry(&c, a)
		if e.linkage.ok() && !declared {
			if s := u.stringOf(e.linkage, secInfo); s.ok {
				return s, true
			}
		}
		if !name.ok && e.name.ok() {
			name = u.stringOf(e.name, secInfo)
		}
		if name.ok && declared {
			break
		}
		next := e.specified
		if !next.ok() {
			next = e.origin
		}
		if next.isAlt() {
			return d.links.altName(next.u, name, declared)
		}
		if u, entry = u.follow(next); u == nil {
			break
		}
	}
	return name, false
}

// nameStart returns the entry at which entryName may begin instead of entry, whose attributes are
// in e. An entry without a name and a specification has the name of its origin.
func (u *unit) nameStart(entry uint32, e *entryData) uint32 {
	if e.name.ok() || e.linkage.ok() || e.specified.ok() {
		return entry
	}
	if origin, ok := u.localEntry(e.origin); ok {
		return origin
	}
	return entry
}

// follow returns the entry that ref refers to. It returns nil if the entry is in a type unit or
// another file, or if the reference is damaged.
func (u *unit) follow(ref value) (*unit, uint32) {
	if entry, ok := u.localEntry(ref); ok {
		return u, entry
	}
	if ref.form != formRefAddr {
		return nil, 0
	}
	off := ref.u
	if off < u.off || off-u.off >= uint64(len(u.data)) {
		if u = u.d.unitOf(off); u == nil {
			return nil, 0
		}
		u.used = u.d.tick
	}
	if off -= u.off; off < uint64(u.root) || off >= uint64(len(u.data)) {
		return nil, 0
	}
	return u, uint32(off)
}

// localEntry returns the entry of a reference that counts from the beginning of the unit.
func (u *unit) localEntry(ref value) (entry uint32, ok bool) {
	switch ref.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		return uint32(ref.u), ref.u >= uint64(u.root) && ref.u < uint64(len(u.data))
	}
	return 0, false
}
