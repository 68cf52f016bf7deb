package dwarf

import (
	"cmp"
	"slices"
)

// rowBytes is a low estimate of the bytes that a line program takes for each row.
const rowBytes = 5

// Initial capacity for a line program: a row for each keptBytes, and fewSequences sequences plus
// one for each sequenceBytes. Most programs need less.
const (
	keptBytes     = 12
	fewSequences  = 100
	sequenceBytes = 1 << 10
)

// maxSequence bounds the bytes of a sequence: its rows have 32-bit addresses.
const maxSequence = 1<<32 - 1

// programSteps estimates the steps of a run of the line program, for spend: one for every four
// bytes.
func (t *lineTable) programSteps() int { return (len(t.program.buf) - t.program.pos) / 4 }

// nearest runs the program to the end of a sequence. It returns the last row with the highest
// address not above addr, if any.
func (m *lineRun) nearest(addr uint64) (near lineHit) {
	var nearPC uint64
	if m.opened {
		near, nearPC = m.hit(), m.pc
	}
	m.top = addr
	for m.next() {
		if m.pc >= nearPC {
			near, nearPC = m.hit(), m.pc
		}
	}
	return near
}

func (u *unit) keepLines() {
	if !u.mayKeep() {
		return
	}
	var m lineRun
	m.begin(u.d, u)
	s := u.d.space()
	rows, seqs, ok := m.collect(s.rows, s.seqs)
	s.seqs = seqs
	u.storeRows(&m, rows, seqs, ok)
}

// mayKeep takes the steps of a run of the line program from the budget, and reports whether the run
// may keep its rows. It sets t.crowded if no memory is granted for the rows.
func (u *unit) mayKeep() bool {
	t := &u.lines
	if !u.d.spend(t.programSteps()) {
		return false
	}
	t.crowded = !u.d.affordRows(t)
	return !t.crowded
}

// collect runs the program and returns its rows and sequences. It uses the memory of the arguments
// if that is enough. ok is false if there are too many rows.
func (m *lineRun) collect(rows []lineRow, seqs []sequence) (_ []lineRow, _ []sequence, ok bool) {
	bytes := len(m.prog) - m.pos
	rows, seqs = room(rows, min(bytes/keptBytes, maxRows)), room(seqs, fewSequences+bytes/sequenceBytes)
	for m.running() {
		first, before := len(rows), m.place()
		var sorted, fits bool
		if rows, sorted, fits = m.appendSorted(rows); !sorted {
			m.goBack(before)
			rows, fits = m.appendAll(rows[:first])
		}
		if !fits {
			return nil, seqs, false
		}
		if m.lo == m.hi {
			rows = rows[:first]
			continue
		}
		if !sorted {
			slices.SortStableFunc(rows[first:], func(a, b lineRow) int { return cmp.Compare(a.addr, b.addr) })
			rows = compact(rows, first)
		}
		seqs = append(seqs, sequence{m.lo, m.hi, uint32(first), uint32(len(rows) - first)})
	}
	return rows, seqs, true
}

// appendSorted runs the program to the end of a sequence and appends its rows. It leaves out rows
// that compact would drop, about three in four. sorted is false if a row has a lower address than
// the row before it; that row and later rows are then missing. fits is false if there are too many
// rows.
func (m *lineRun) appendSorted(rows []lineRow) (_ []lineRow, sorted, fits bool) {
	first, last := len(rows), uint32(0)
	for m.next() {
		rel := m.pc - m.low
		if rel > maxSequence { // the row is before the sequence's start or after its end
			continue
		}
		r := m.row(uint32(rel))
		if r.addr < last {
			return rows, false, true
		}
		last = r.addr
		if n := len(rows); n == maxRows {
			return rows, true, false
		}
		rows = appendRow(rows, first, r)
	}
	return rows, true, true
}

// appendAll is appendSorted for rows in any order. It keeps the rows that compact would drop.
func (m *lineRun) appendAll(rows []lineRow) (_ []lineRow, fits bool) {
	for m.next() {
		if rel := m.pc - m.low; rel <= maxSequence {
			if len(rows) == maxRows {
				return rows, false
			}
			rows = append(rows, m.row(uint32(rel)))
		}
	}
	return rows, true
}

// row returns the row in the registers. rel is its distance from the start of the sequence.
func (m *lineRun) row(rel uint32) lineRow {
	if m.discriminating {
		return lineRow{addr: rel, line: m.discriminator}
	}
	return lineRow{rel, m.line, m.file, m.column}
}

// storeRows stores the results of collect: the rows and sequences, or stops if there are too many
// rows.
func (u *unit) storeRows(m *lineRun, rows []lineRow, seqs []sequence, ok bool) {
	d, t := u.d, &u.lines
	d.space().rows = rows
	if t.huge = !ok; t.huge {
		u.keepStops()
	} else {
		m.finish()
		t.rows = slices.Clone(rows)
		t.keepSequences(slices.Clone(seqs))
	}
	if t.lost {
		u.damaged("line table at %#x: more than %d rows, in no order", u.stmtList.u, maxRows)
	}
}

// keepSequences sorts seqs by their end addresses, stores them, and marks the table as decoded.
// seqs index t's rows, or its stops if t is huge.
func (t *lineTable) keepSequences(seqs []sequence) {
	slices.SortStableFunc(seqs, func(a, b sequence) int { return cmp.Compare(a.hi, b.hi) })
	t.seqs, t.listed, t.decoded = seqs, false, true
}

// compact drops the rows of rows[first:] that cover no address or equal the preceding row. These
// rows must be sorted by address.
func compact(rows []lineRow, first int) []lineRow {
	all := rows[first:]
	rows = rows[:first]
	for _, r := range all {
		rows = appendRow(rows, first, r)
	}
	return rows
}

// appendRow appends r to the rows of a sequence, rows[first:]. r replaces a row with the same
// address. It drops r if the preceding row has the same file, line and column.
func appendRow(rows []lineRow, first int, r lineRow) []lineRow {
	n := len(rows)
	if n > first && rows[n-1].addr == r.addr { // the last of several rows at an address wins
		n--
	}
	if n > first {
		if last := &rows[n-1]; last.line == r.line && last.file == r.file && last.column == r.column {
			return rows[:n]
		}
	}
	return append(rows[:n], r)
}
