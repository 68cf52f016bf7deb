package dwarf

import "sort"

// A lineStop is a place in the line program of a huge table, after a row, from which the program
// can be resumed.
type lineStop struct {
	registers
	pos uint64 // in the section
}

// A stopper chooses the stops of a table whose rows are too many to keep: the first row of each
// sequence, and every stopRows-th.
type stopper struct {
	list []lineStop
	rows int // since the last stop
	at   int // position of the last stop in the program
	// a sequence is not in the order of addresses, or there are too many stops, or they are too far
	// apart
	lost bool
}

// row is called for each row: rel is its address in the sequence, p the position after it.
func (s *stopper) row(r *registers, seq *sequenceState, rel uint32, p int) {
	s.lost = s.lost || rel < seq.last
	seq.last = rel
	if len(s.list) == seq.first {
		s.at = p // instructions before the sequence are not run again
	}
	if s.rows++; len(s.list) == seq.first || s.rows >= stopRows {
		s.add(*r, p)
	}
}

// add makes a stop.
func (s *stopper) add(r registers, p int) bool {
	if s.lost = s.lost || p-s.at > maxStopBytes || len(s.list) >= maxStops; s.lost {
		return false
	}
	s.list = append(s.list, lineStop{r, uint64(p)})
	s.rows, s.at = 0, p
	return true
}

// lineFromStop returns the row of addr, which a sequence covers; its stops are in the order of
// their addresses, except for the last, which ends it.
func (d *Data) lineFromStop(u *unit, stops []lineStop, addr uint64) lineHit {
	i := sort.Search(len(stops)-1, func(i int) bool { return stops[i].pc > addr })
	if i == 0 || !d.spend(int(stops[i].pos-stops[i-1].pos)/4) {
		return lineHit{}
	}
	return d.runLines(u, findRow, addr, stops[i-1:i+1])
}
