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
	d := u.d
	t := &u.lines
	if !d.spendProgram(t) {
		return
	}
	if t.crowded = !d.affordRows(t); t.crowded {
		return
	}
	if u.keepRows(); t.huge {
		u.keepStops()
	}
	if t.lost {
		u.damaged("line table at %#x: more than %d rows, in no order", u.stmtList.u, maxRows)
	}
}

// affordRows asks for the memory of the table's rows, if they may be many: once for the running
// program, and once for the copy that is kept.
func (d *Data) affordRows(t *lineTable) bool {
	rows := min((len(t.program.buf)-t.program.pos)/rowBytes, maxRows)
	bytes := 2 * int64(rows) * int64(unsafe.Sizeof(lineRow{}))
	return bytes < manyRowBytes || d.afford == nil || d.afford(bytes)
}

// keepRows stores the rows and sequences of the table. If there are too many rows it stores nothing
// and sets huge.
func (u *unit) keepRows() {
	d := u.d
	t := &u.lines
	var m lineRun
	m.begin(d, u)
	rows := slices.Grow(d.rows[:0], min((len(m.prog)-m.pos)/rowBytes, maxRows))
	var seqs []sequence
	for m.running() {
		first, last, sorted := len(rows), uint64(0), true
		for m.next() {
			rel := m.pc - m.low
			if rel > maxSequence { // it is before the sequence's start or after its end
				continue
			}
			if len(rows) == maxRows {
				t.huge = true
				d.rows = nil
				return
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
	m.finish()
	t.rows = slices.Clone(rows)
	t.keepSequences(seqs)
	d.rows = rows
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
