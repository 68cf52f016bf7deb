package dwarf

// dwz moves entries and strings that several files share to a supplementary file (DWARF 5, 7.3.6;
// before DWARF 5, GNU's .gnu_debugaltlink). A supplementary file has no code: only names and types
// are read from it.

// isAlt reports whether v refers to an entry of the supplementary file.
func (v value) isAlt() bool {
	return v.form == formGNURefAlt || v.form == formRefSup4 || v.form == formRefSup8
}

// altName is entryName for the entry at off in the supplementary file. name is the plain name found
// so far. altName returns the entry's name if name is missing or the entry has a linkage name.
// Otherwise it returns name.
func (l *links) altName(off uint64, name strRef, declared bool) (strRef, bool) {
	alt := l.supplementary()
	if alt == nil {
		return name, false
	}
	d := l.d
	before := alt.Footprint()
	alt.continues(&d.budget)
	found, linkage := strRef{}, false
	if u := alt.unitOf(off); u != nil && off-u.off >= uint64(u.root) {
		u.used = d.tick
		found, linkage = u.entryName(uint32(off-u.off), declared)
	}
	d.work = alt.work
	l.held += alt.Footprint() - before
	if d.err == nil {
		d.err = alt.err
	}
	if !found.ok || name.ok && !linkage {
		return name, false
	}
	switch found.sec {
	case secInfo:
		found.sec = secAltInfo
	case secStr:
		found.sec = secAltStr
	case secLineStr:
		found.sec = secAltLineStr
	default: // a supplementary file has no supplementary file itself
		return name, false
	}
	return found, linkage
}

func (l *links) supplementary() *Data {
	if l == nil {
		return nil
	}
	return l.alt
}
