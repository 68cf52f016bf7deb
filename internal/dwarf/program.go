package dwarf

import (
	"cmp"
	"slices"
	"unsafe"
)

// A special is the effect of a special opcode.
type special struct {
	advance uint16 // added to the address: bytes, or operations if an instruction holds several
	line    int16
}

func (t *lineTable) specials() (table [256]special) {
	unit := uint16(t.minInst)
	if t.maxOps > 1 {
		unit = 1
	}
	ops, line := uint16(0), uint8(0)
	for op := int(t.opBase); op < 256; op++ {
		table[op] = special{ops * unit, int16(t.lineBase) + int16(line)} // at most 255*255
		if t.lineRange == 0 {
			continue
		}
		if line++; line == t.lineRange {
			ops, line = ops+1, 0
		}
	}
	return table
}

// registers are the state of a line program between two sequences (DWARF 5, 6.2.2), as far as rows
// keep it.
type registers struct {
	pc      uint64
	opIndex uint64 // operation within the instruction, if it holds several
	line    uint32
	file    uint16
	column  uint16
}

// hit returns the row that the registers make.
func (r *registers) hit() lineHit { return lineHit{r.line, r.file, r.column, true} }

// advance adds operations to the address.
func (t *lineTable) advance(r *registers, ops uint64) {
	if t.maxOps > 1 {
		ops += r.opIndex
		r.opIndex = ops % uint64(t.maxOps)
		ops /= uint64(t.maxOps)
	}
	r.pc += ops * uint64(t.minInst)
}

// A sequenceState is the state of a sequence before its end.
type sequenceState struct {
	open     bool // it has a row
	dead     bool // its code was discarded: its rows are dropped
	unsorted bool
	low      uint64
	first    int    // number of its first row, or stop
	last     uint32 // address of its last row, relative to low

	near   lineHit // if no rows are kept: the row nearest to the address asked for
	nearPC uint64
}

// rowBytes is the number of bytes of a line program per row, as terse compilers write them.
const rowBytes = 5

// A runPurpose is the purpose of running a line program.
type runPurpose uint8

const (
	findRow   runPurpose = iota // store nothing: much cheaper for one lookup
	keepRows                    // store rows and sequences in the table
	keepStops                   // store stops and sequences
)

// coldLine returns the row of addr.
func (d *Data) coldLine(u *unit, addr uint64) lineHit {
	t := &u.lines
	if !d.spend((len(t.program.buf) - t.program.pos) / 4) {
		return lineHit{}
	}
	return d.runLines(u, findRow, addr, nil)
}

// keepLines runs the line program and stores its result in the table.
func (d *Data) keepLines(u *unit) {
	t := &u.lines
	if !d.spend((len(t.program.buf) - t.program.pos) / 4) {
		return
	}
	if t.crowded = !d.affordRows(t); t.crowded {
		return
	}
	d.runLines(u, keepRows, 0, nil)
	if t.huge {
		d.runLines(u, keepStops, 0, nil)
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

// runLines runs the line program: all of it, or from the first of two stops to the second. For
// findRow it returns the row of addr.
func (d *Data) runLines(u *unit, purpose runPurpose, addr uint64, part []lineStop) lineHit {
	t := &u.lines
	prog, p, big := t.program.buf, t.program.pos, t.program.big
	keep := purpose == keepRows
	table := t.specials()
	opBase := max(1, t.opBase)
	vliw := t.maxOps > 1
	rows, seqs := d.rows[:0], t.seqs[:0]
	if keep {
		rows = slices.Grow(rows, min((len(prog)-p)/rowBytes, maxRows))
	}

	r := registers{line: 1, file: 1}
	own := everywhere
	var seq sequenceState
	var best lineHit
	bestLo, bestHi := uint64(0), ^uint64(0)
	stops := stopper{at: p}
	if part != nil {
		prog, p, r = prog[:part[1].pos], int(part[0].pos), part[0].registers
		seq.open, seq.low, seq.near, seq.nearPC = true, r.pc, r.hit(), r.pc
	}

	for uint(p) < uint(len(prog)) { // p is -1 after an operand that is cut off
		op := prog[p]
		p++
		if op >= opBase {
			s := table[op]
			if vliw {
				t.advance(&r, uint64(s.advance))
			} else {
				r.pc += uint64(s.advance)
			}
			r.line += uint32(int32(s.line))
		} else {
			var v uint64
			switch op {
			case lnsCopy:
			case lnsSetColumn:
				// here and below: nearly always the case
				if uint(p) < uint(len(prog)) && prog[p] < 0x80 {
					r.column = uint16(prog[p])
					p++
					continue
				}
				v, p = operand(prog, p)
				r.column = 0
				if v <= 0xffff {
					r.column = uint16(v)
				}
				continue
			case lnsAdvanceLine:
				if uint(p) < uint(len(prog)) && prog[p] < 0x80 {
					r.line += uint32(int8(prog[p]<<1) >> 1)
					p++
					continue
				}
				if uint(p+1) < uint(len(prog)) && prog[p+1] < 0x80 {
					r.line += uint32(int32(uint32(prog[p]&0x7f)|uint32(prog[p+1])<<7) << 18 >> 18)
					p += 2
					continue
				}
				v, p = signedOperand(prog, p)
				r.line += uint32(v)
				continue
			case lnsNegateStmt, lnsSetBasicBlock, lnsSetPrologueEnd, lnsSetEpilogueBegin:
				continue
			case lnsSetFile:
				v, p = operand(prog, p)
				r.file = uint16(min(v, noFile))
				continue
			case lnsAdvancePC:
				v, p = operand(prog, p)
				t.advance(&r, v)
				continue
			case lnsConstAddPC:
				if vliw {
					t.advance(&r, uint64(table[255].advance))
				} else {
					r.pc += uint64(table[255].advance)
				}
				continue
			case lnsFixedAdvancePC:
				c := cursor{buf: prog, pos: p, big: big}
				r.pc += uint64(c.u16())
				r.opIndex = 0
				if p = c.pos; c.bad {
					p = -1
				}
				continue
			case 0:
				if v, p = operand(prog, p); p < 0 || v > uint64(len(prog)-p) {
					p = -1
					continue
				}
				if v == 0 {
					continue
				}
				arg := cursor{buf: prog[p : p+int(v)], pos: 1, big: big}
				p += int(v)
				switch arg.buf[0] {
				case lneSetAddress:
					r.pc, r.opIndex = arg.word(uint8(min(v-1, 0xff))), 0
					own = d.sec.owner(uint64(p) - v + 1)
					seq.dead = arg.bad || r.pc >= t.enc.maxAddr()-1 || r.pc == 0 && !d.sec.zeroCode
				case lneDefineFile:
					d.defineFile(u, arg, uint64(p)-v)
				case lneEndSequence:
					lo, hi := max(seq.low, own.Lo), min(r.pc, own.Hi)
					if seq.open && lo < hi && r.pc-seq.low <= 1<<32-1 {
						switch {
						case keep:
							if seq.unsorted {
								slices.SortStableFunc(rows[seq.first:], func(a, b lineRow) int { return cmp.Compare(a.addr, b.addr) })
							}
							if skip := uint32(lo - seq.low); skip > 0 {
								for i := range rows[seq.first:] {
									row := &rows[seq.first+i]
									row.addr = max(row.addr, skip) - skip
								}
							}
							rows = compact(rows, seq.first)
							seqs = append(seqs, sequence{lo, hi, uint32(seq.first), uint32(len(rows) - seq.first)})
							seq.first = len(rows)
						case purpose == keepStops:
							if n := len(stops.list) - seq.first; stops.add(registers{}, p) {
								seqs = append(seqs, sequence{lo, hi, uint32(seq.first), uint32(n)})
							}
							seq.first = len(stops.list)
						case hi > addr && hi < bestHi:
							best, bestLo, bestHi = seq.near, lo, hi
						}
					}
					if keep {
						rows = rows[:seq.first]
					} else if purpose == keepStops {
						stops.list = stops.list[:seq.first]
					}
					seq.open, seq.unsorted = false, false
					r, own = registers{line: 1, file: 1}, everywhere
				}
				continue
			default:
				for range t.opLens[op-1] {
					if p >= 0 {
						_, p = uleb(prog, p)
					}
				}
				continue
			}
		}
		// A row.
		if !seq.open {
			if seq.dead || r.pc == 0 && !d.sec.zeroCode {
				continue
			}
			seq.open, seq.low, seq.last, seq.nearPC = true, r.pc, 0, r.pc
		}
		if purpose == findRow {
			if r.pc <= addr && r.pc >= seq.nearPC && !seq.dead {
				seq.near, seq.nearPC = r.hit(), r.pc
			}
			continue
		}
		// else it is before the sequence's start or after its end
		if rel := r.pc - seq.low; rel <= 1<<32-1 && !seq.dead {
			if purpose == keepStops {
				stops.row(&r, &seq, uint32(rel), p)
				if stops.lost {
					t.lost, t.seqs = true, nil
					return lineHit{}
				}
				continue
			}
			if len(rows) == maxRows {
				t.huge = true
				d.rows = nil
				if !t.files.defined {
					t.files = fileTable{} // the next run defines them all again
				}
				return lineHit{}
			}
			rows = append(rows, lineRow{uint32(rel), r.line, r.file, r.column})
			seq.unsorted = seq.unsorted || uint32(rel) < seq.last
			seq.last = uint32(rel)
		}
	}
	t.files.defined = true
	d.read += int64(len(prog) - t.program.pos)
	if p < 0 {
		u.damaged("line table at %#x: program", u.stmtList.u)
	}
	if purpose != findRow {
		slices.SortStableFunc(seqs, func(a, b sequence) int { return cmp.Compare(a.hi, b.hi) })
		t.seqs, t.decoded = slices.Clip(seqs), true
	}
	switch purpose {
	case keepRows:
		t.rows = slices.Clone(rows[:seq.first])
	case keepStops:
		if t.lost = stops.lost; t.lost {
			t.seqs, t.decoded = nil, false
			return lineHit{}
		}
		t.stops = slices.Clip(stops.list[:seq.first])
	}
	d.rows = rows
	if part != nil && !best.ok { // the part does not end the sequence
		return seq.near
	}
	if bestLo > addr || !best.ok {
		return lineHit{}
	}
	return best
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
