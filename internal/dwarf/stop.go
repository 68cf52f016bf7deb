package dwarf

import (
	"slices"
	"sort"
)

// A lineStop is a position after a row in the line program of a huge table. The program can be
// resumed there.
type lineStop struct {
	registers
	pos uint64 // offset in .debug_line
}

// A stopper chooses the stops of a table with too many rows to keep: the first row of each
// sequence, and every stopRows-th row after that.
type stopper struct {
	list  []lineStop
	first int    // index of the first stop of the current sequence
	last  uint64 // address of the last row, relative to the start of the sequence
	rows  int    // rows since the last stop
	at    int    // position of the last stop in the program
	// a sequence is not in the order of addresses, or stops are too many or too far apart
	lost bool
}

// row makes a stop of the current row of m if one is due. rel is the row's distance from the start
// of the sequence.
func (s *stopper) row(m *lineRun, rel uint64) {
	first := len(s.list) == s.first
	s.lost = s.lost || rel < s.last && !first
	s.last = rel
	if first {
		s.at = m.pos // opcodes before the first row are not run again
	}
	if s.rows++; first || s.rows >= stopRows {
		s.add(m.registers, m.pos)
	}
}

// add makes a stop, or sets lost if a limit is exceeded.
func (s *stopper) add(r registers, p int) {
	if s.lost = s.lost || p-s.at > maxStopBytes || len(s.list) >= maxStops; !s.lost {
		s.list = append(s.list, lineStop{r, uint64(p)})
		s.rows, s.at = 0, p
	}
}

// keepStops stores the stops and sequences of a huge table, or sets lost.
func (u *unit) keepStops() {
	d := u.d
	t := &u.lines
	var m lineRun
	m.begin(d, u)
	stops := stopper{at: m.pos}
	var seqs []sequence
	for m.running() && !stops.lost {
		for !stops.lost && m.next() {
			// other rows are before the sequence's start or after its end
			if rel := m.pc - m.low; rel <= maxSequence {
				stops.row(&m, rel)
			}
		}
		if m.lo < m.hi {
			n := len(stops.list) - stops.first
			seqs = append(seqs, sequence{m.lo, m.hi, uint32(stops.first), uint32(n)})
			stops.add(registers{}, m.pos)
			stops.first = len(stops.list)
		}
		stops.list = stops.list[:stops.first]
	}
	m.finish()
	if t.lost = stops.lost; !t.lost {
		t.stops = slices.Clip(stops.list)
		t.keepSequences(seqs)
	}
}

// lineFromStop returns the row of addr. stops are the stops of the sequence that covers addr,
// sorted by address. The last stop marks the end of the sequence and has no address.
func (u *unit) lineFromStop(stops []lineStop, addr uint64) lineHit {
	d := u.d
	i := sort.Search(len(stops)-1, func(i int) bool { return stops[i].pc > addr })
	if i == 0 || !d.spend(int(stops[i].pos-stops[i-1].pos)/4) {
		return lineHit{}
	}
	var m lineRun
	m.begin(d, u)
	m.resume(&stops[i-1], stops[i].pos)
	near := m.nearest(addr)
	m.finish()
	return near
}
