package dwarf

// lineAt returns the row of the line table for addr, as Lookup finds it.
func (u *unit) lineAt(addr uint64) lineHit {
	row, cold := u.beginLine(addr)
	if cold != nil {
		cold.run()
		row = cold.end()
	}
	return row
}

// coldLine returns the row for addr from a run of the whole line program.
func (u *unit) coldLine(addr uint64) lineHit {
	c := u.beginCold(addr)
	if c == nil {
		return lineHit{}
	}
	c.run()
	return c.end()
}

// skip returns the position after the attributes of an entry with abbrev a, or -1 if they reach
// beyond b.
func (t *abbrevTable) skip(b []byte, p int, a *abbrev, big bool) int {
	if a.fixed >= 0 {
		p += int(a.fixed)
		if p > len(b) {
			return -1
		}
		return p
	}
	return t.runSteps(b, p, t.steps[a.steps:a.steps+uint32(a.numSteps)], big)
}
