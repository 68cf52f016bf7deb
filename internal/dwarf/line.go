package dwarf

// A lineTable is a unit's part of .debug_line (DWARF 5, 6.2). A row holds the address at which the
// code of a line starts. Each sequence of rows covers a stretch of addresses without a gap.
// Sequences are in any order.
type lineTable struct {
	opened  bool
	present bool // the unit has a table with a sound header

	enc       encoding // encoding of the table, which may differ from the unit's
	minInst   uint8    // bytes of the shortest instruction
	maxOps    uint8    // most operations in an instruction; more than 1 only for VLIW machines
	lineBase  int8
	lineRange uint8
	opBase    uint8

	runs    uint8
	listed  bool // seqs are from a coldRun: first and n give their opcodes in the program
	decoded bool // seqs, and rows or stops, are set
	huge    bool // more than maxRows rows: stops are set, unless lost
	lost    bool // no row can be found in bounded time
	crowded bool // no memory was granted for the rows

	opLens  []byte // numbers of operands of the standard opcodes, from opcode 1
	program cursor
	dirs    int // position of the directory table in the buffer of program
	rerun   int // bytes of the program that were run again for single addresses
	rows    []lineRow
	stops   []lineStop
	seqs    []sequence
	files   fileTable

	discriminators *discriminatorTable // nil until Lookup needs a discriminator
}

// A lineRow is a row of a line table, packed into 12 bytes.
type lineRow struct {
	addr   uint32 // bytes from the start of its sequence
	line   uint32
	file   uint16
	column uint16
}

// A sequence covers the addresses [lo,hi). first and n select its rows in lineTable.rows, sorted by
// address, without the row that ends the sequence. In a huge table they select stops instead. In a
// listed table they select the opcodes of the sequence in the line program.
type sequence struct {
	lo, hi uint64
	first  uint32
	n      uint32
}

func (t *lineTable) footprint() int64 {
	return sizeOf(t.rows) + sizeOf(t.stops) + sizeOf(t.seqs) + t.files.footprint() + t.discriminators.footprint()
}

// header returns a cursor at the directory table.
func (t *lineTable) header() cursor {
	c := t.program
	c.pos = t.dirs
	return c
}

func (u *unit) openLines() *lineTable {
	t := &u.lines
	if t.opened || !u.stmtList.ok() {
		return t
	}
	t.opened = true
	if t.present = t.parseHeader(cursorAt(u.d.sec.get(secLine), u.stmtList.u, u.d.big), u.enc); !t.present {
		u.damaged("line table at %#x: header", u.stmtList.u)
	}
	return t
}

func (t *lineTable) parseHeader(c cursor, e encoding) bool {
	n, offSize := c.length()
	if c.bad {
		return false
	}
	c.buf = c.buf[:c.pos+n]
	t.enc = encoding{version: c.u16(), addrSize: e.addrSize, offSize: offSize}
	if t.enc.version < 2 || t.enc.version > 5 {
		return false
	}
	if t.enc.version >= 5 {
		t.enc.addrSize = c.u8()
		c.u8() // segment selector size
		if t.enc.addrSize != 4 && t.enc.addrSize != 8 {
			return false
		}
	}
	headerLength := c.word(offSize)
	t.program = c
	t.program.take(headerLength)
	t.minInst = c.u8()
	t.maxOps = 1
	if t.enc.version >= 4 {
		t.maxOps = max(1, c.u8())
	}
	c.u8() // default_is_stmt
	t.lineBase, t.lineRange, t.opBase = int8(c.u8()), c.u8(), c.u8()
	t.opLens = c.take(uint64(max(1, t.opBase) - 1))
	t.dirs = c.pos
	return !c.bad && !t.program.bad
}

// A lineHit is the row of an address; ok is false if there is none.
type lineHit struct {
	line   uint32
	file   uint16
	column uint16
	ok     bool
}

// beginLine returns the row of addr. If the line program must be run to find the row, beginLine
// returns the run, ready to start, as cold.
//
// LLVM takes the sequence with the lowest end above the address. If that sequence does not cover
// the address, there is no row. Otherwise LLVM takes the last row whose address is not above the
// address.
func (u *unit) beginLine(addr uint64) (row lineHit, cold *coldRun) {
	t := u.openLines()
	if !t.present || t.lost {
		return lineHit{}, nil
	}
	if t.decoded {
		return u.lineFromRows(addr), nil
	}
	size := len(t.program.buf) - t.program.pos
	again := u.d.tick > warmLookups && size >= bigProgram
	switch {
	case t.listed:
		s := t.covering(addr)
		if t.rerun += len(t.seqs) + int(s.n); t.rerun <= size/rerunShare {
			return u.lineFromProgram(s, addr), nil
		}
		if u.keepLines(); t.crowded {
			return u.lineFromProgram(s, addr), nil
		}
	case t.runs < coldLineLookups && !again && size <= maxRows: // a longer program may be huge
		t.runs++
		return lineHit{}, u.beginCold(addr)
	default:
		if cold = u.beginKeeping(addr); cold == nil && t.crowded {
			cold = u.beginCold(addr)
		}
		return lineHit{}, cold
	}
	if !t.decoded {
		return lineHit{}, nil
	}
	return u.lineFromRows(addr), nil
}

// lineFromRows returns the row of addr from the kept rows or stops.
func (u *unit) lineFromRows(addr uint64) lineHit {
	t := &u.lines
	s := sequenceAt(t.seqs, addr)
	if s == nil {
		return lineHit{}
	}
	if t.huge {
		return u.lineFromStop(t.stops[s.first:s.first+s.n+1], addr)
	}
	r := s.row(t.rows, addr)
	if r == nil {
		return lineHit{}
	}
	return lineHit{r.line, r.file, r.column, true}
}

// sequenceAt returns the sequence that covers addr, or nil. seqs are sorted by their ends.
func sequenceAt(seqs []sequence, addr uint64) *sequence {
	i, end := 0, len(seqs)
	for i < end {
		if m := int(uint(i+end) >> 1); seqs[m].hi > addr {
			end = m
		} else {
			i = m + 1
		}
	}
	if i == len(seqs) || addr < seqs[i].lo {
		return nil
	}
	return &seqs[i]
}

// row returns the row of addr, which is in s; nil if s has no row at addr or below.
func (s *sequence) row(rows []lineRow, addr uint64) *lineRow {
	rel := uint32(addr - s.lo)
	rows = rows[s.first : s.first+s.n]
	lo, hi := 0, len(rows)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); rows[m].addr > rel {
			hi = m
		} else {
			lo = m + 1
		}
	}
	if lo == 0 {
		return nil
	}
	return &rows[lo-1]
}
