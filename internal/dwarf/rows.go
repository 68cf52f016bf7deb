package dwarf

import (
	"cmp"
	"slices"
	"unsafe"
)

// rowBytes is the number of bytes of a line program per row, as terse compilers write them.
const rowBytes = 5

// maxSequence is the number of bytes of the largest sequence, whose rows have 32-bit addresses.
const maxSequence = 1<<32 - 1

// spendProgram takes the steps of running the line program off the budget of the current lookup.
func (d *Data) spendProgram(t *lineTable) bool {
	return d.spend((len(t.program.buf) - t.program.pos) / 4)
}

// nearest runs the program to the end of a sequence. It returns the last of the rows with the
// highest address not above addr, if the sequence has one.
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

// keepLines runs the line program and stores its result in the table.
func (u *unit) keepLines() {
	if !u.mayKeep() {
		return
	}
	var m lineRun
	m.begin(u.d, u)
	rows, seqs, ok := m.collect(u.d.rows)
	u.storeRows(&m, rows, seqs, ok)
}

// mayKeep reports whether the line program may be run, and its rows kept.
func (u *unit) mayKeep() bool {
	t := &u.lines
	if !u.d.spendProgram(t) {
		return false
	}
	t.crowded = !u.d.affordRows(t)
	return !t.crowded
}

// affordRows asks for the memory of the table's rows, if they may be many: once for the running
// program, and once for the copy that is kept.
func (d *Data) affordRows(t *lineTable) bool {
	rows := min((len(t.program.buf)-t.program.pos)/rowBytes, maxRows)
	bytes := 2 * int64(rows) * int64(unsafe.Sizeof(lineRow{}))
	return bytes < manyRowBytes || d.afford == nil || d.afford(bytes)
}

// collect runs the program and returns its rows, in the memory of scratch if that is enough, and its
// sequences. ok is false if there are too many rows.
func (m *lineRun) collect(scratch []lineRow) (rows []lineRow, seqs []sequence, ok bool) {
	rows = slices.Grow(scratch[:0], min((len(m.prog)-m.pos)/rowBytes, maxRows))
	for m.running() {
		first, last, sorted := len(rows), uint64(0), true
		for m.next() {
			rel := m.pc - m.low
			if rel > maxSequence { // it is before the sequence's start or after its end
				continue
			}
			if len(rows) == maxRows {
				return nil, nil, false
			}
			rows = append(rows, lineRow{uint32(rel), m.line, m.file, m.column})
			sorted = sorted && rel >= last
			last = rel
		}
		if m.lo == m.hi {
			rows = rows[:first]
			continue
		}
		if !sorted {
			slices.SortStableFunc(rows[first:], func(a, b lineRow) int { return cmp.Compare(a.addr, b.addr) })
		}
		rebase(rows[first:], uint32(m.lo-m.low))
		rows = compact(rows, first)
		seqs = append(seqs, sequence{m.lo, m.hi, uint32(first), uint32(len(rows) - first)})
	}
	return rows, seqs, true
}

// storeRows stores what collect has returned: the rows and sequences, or, if there are too many rows,
// stops in their place.
func (u *unit) storeRows(m *lineRun, rows []lineRow, seqs []sequence, ok bool) {
	d, t := u.d, &u.lines
	d.rows = rows
	if t.huge = !ok; t.huge {
		u.keepStops()
	} else {
		m.finish()
		t.rows = slices.Clone(rows)
		t.keepSequences(seqs)
	}
	if t.lost {
		u.damaged("line table at %#x: more than %d rows, in no order", u.stmtList.u, maxRows)
	}
}

// keepSequences stores the sequences of rows or stops.
func (t *lineTable) keepSequences(seqs []sequence) {
	slices.SortStableFunc(seqs, func(a, b sequence) int { return cmp.Compare(a.hi, b.hi) })
	t.seqs, t.listed, t.decoded = slices.Clip(seqs), false, true
}

// rebase makes rows relative to an address that is skip bytes after the start of their sequence.
func rebase(rows []lineRow, skip uint32) {
	if skip == 0 {
		return
	}
	for i := range rows {
		rows[i].addr = max(rows[i].addr, skip) - skip
	}
}

// compact drops the rows of rows[first:], sorted by address, that cover no address or equal the row
// before: three in four.
func compact(rows []lineRow, first int) []lineRow {
	n := first
	for _, r := range rows[first:] {
		if n > first && rows[n-1].addr == r.addr { // the last of several wins
			n--
		}
		if n > first {
			if last := &rows[n-1]; last.line == r.line && last.file == r.file && last.column == r.column {
				continue
			}
		}
		rows[n] = r
		n++
	}
	return rows[:n]
}
