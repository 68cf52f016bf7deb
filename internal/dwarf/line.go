package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// A lineTable is a unit's part of .debug_line (DWARF 5, 6.2): rows that say from which address on a line's code begins, in sequences that each
// cover a stretch of addresses without a gap. Sequences come in any order.
type lineTable struct {
	opened  bool
	present bool // and its header is sound

	enc       encoding // of the table, which may differ from the unit's
	minInst   uint8    // bytes of the shortest instruction
	maxOps    uint8    // operations in an instruction, of which only VLIW machines have more than one
	lineBase  int8
	lineRange uint8
	opBase    uint8
	opLens    []byte // operands of the standard opcodes, from 1 on
	header    cursor // at the directory table
	program   cursor

	runs    uint8
	decoded bool
	rows    []lineRow
	seqs    []sequence
	files   fileTable
}

// A lineRow is a row in 12 bytes.
type lineRow struct {
	addr   uint32 // bytes behind the start of its sequence
	line   uint32
	file   uint16
	column uint16
}

// A sequence is [lo,hi) and its rows, sorted by address; the row that ends it is not among them.
type sequence struct {
	lo, hi uint64
	first  uint32
	n      uint32
}

func (t *lineTable) footprint() int64 { return sizeOf(t.rows) + sizeOf(t.seqs) + t.files.footprint() }

// openLines reads the header of the unit's line table.
func (d *Data) openLines(u *unit) *lineTable {
	t := &u.lines
	if t.opened || !u.stmtList.ok() {
		return t
	}
	t.opened = true
	if t.present = t.parseHeader(cursorAt(d.sec.get(secLine), u.stmtList.u, d.big), u.enc); !t.present {
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
	t.header = c
	return !c.bad && !t.program.bad
}

// A lineHit is the row of an address.
type lineHit struct {
	line   uint32
	file   uint16
	column uint16
	ok     bool
}

// lineAt returns the row of addr.
//
// LLVM takes the sequence that ends first behind the address. If that one does not cover it there is no row, else it is the last whose
// address is not higher.
func (d *Data) lineAt(u *unit, addr uint64) lineHit {
	t := d.openLines(u)
	if !t.present {
		return lineHit{}
	}
	if !t.decoded {
		if t.runs < coldLineLookups {
			t.runs++
			return d.runLines(u, addr, false)
		}
		t.decoded = true
		d.runLines(u, 0, true)
	}
	i := sort.Search(len(t.seqs), func(i int) bool { return t.seqs[i].hi > addr })
	if i == len(t.seqs) || addr < t.seqs[i].lo {
		return lineHit{}
	}
	s := &t.seqs[i]
	rel := uint32(addr - s.lo)
	rows := t.rows[s.first : s.first+s.n]
	lo, hi := 0, len(rows)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); rows[m].addr > rel {
			hi = m
		} else {
			lo = m + 1
		}
	}
	if lo == 0 {
		return lineHit{}
	}
	r := &rows[lo-1]
	return lineHit{r.line, r.file, r.column, true}
}

// specials returns what each special opcode adds to the address, in operations, and to the line.
func (t *lineTable) specials() (advance [256]uint16, lines [256]int16) {
	adv, line := uint16(0), int16(0)
	for op := int(t.opBase); op < 256; op++ {
		advance[op], lines[op] = adv, int16(t.lineBase)+line
		if t.lineRange == 0 {
			continue
		}
		if line++; line == int16(t.lineRange) {
			adv, line = adv+1, 0
		}
	}
	return advance, lines
}

// runLines runs the line program. With keep it stores sequences and rows in the table. Without, it stores nothing, and returns the row of addr:
// for one lookup that is much cheaper.
func (d *Data) runLines(u *unit, addr uint64, keep bool) lineHit {
	t := &u.lines
	c := t.program
	prog, p := c.buf, c.pos
	advance, lines := t.specials()
	constAdvance := uint64(advance[255])
	opBase, minInst, maxOps := t.opBase, uint64(t.minInst), uint64(t.maxOps)
	top := t.enc.maxAddr()
	if maxOps == 1 { // operations are instructions
		for i := range advance {
			advance[i] *= uint16(minInst) // at most 255*255
		}
	}

	rows, seqs := d.rows[:0], t.seqs
	var (
		pc, opIndex  uint64
		line         = uint32(1)
		file, column = uint16(1), uint16(0)
		dead         bool // rows are of code thrown away

		open     bool // the sequence has a row
		low      uint64
		first    = 0 // row of the sequence
		last     uint32
		unsorted bool

		near   lineHit // the row of the sequence that is nearest to addr
		nearPC uint64
		best   lineHit
		bestLo uint64
		bestHi = ^uint64(0)
		what   = ""
	)
	budget := min(maxRows, d.work)
	n := 0
program:
	for p < len(prog) {
		if n++; n > budget {
			what = "too long"
			break
		}
		op := prog[p]
		p++
		if op >= opBase && op != 0 {
			if maxOps == 1 {
				pc += uint64(advance[op])
			} else {
				ops := opIndex + uint64(advance[op])
				pc += minInst * (ops / maxOps)
				opIndex = ops % maxOps
			}
			line += uint32(int32(lines[op]))
		} else {
			switch op {
			case lnsCopy:
			case lnsAdvancePC:
				var v uint64
				if v, p = uleb(prog, p); p < 0 {
					what = "operand"
					break program
				}
				ops := opIndex + v
				pc += minInst * (ops / maxOps)
				opIndex = ops % maxOps
				continue
			case lnsAdvanceLine:
				c.pos = p
				line += uint32(c.sleb())
				p = c.pos
				continue
			case lnsSetFile:
				var v uint64
				if v, p = uleb(prog, p); p < 0 {
					what = "operand"
					break program
				}
				file = uint16(min(v, noFile))
				continue
			case lnsSetColumn:
				var v uint64
				if v, p = uleb(prog, p); p < 0 {
					what = "operand"
					break program
				}
				if column = uint16(v); v > 0xffff {
					column = 0
				}
				continue
			case lnsNegateStmt, lnsSetBasicBlock, lnsSetPrologueEnd, lnsSetEpilogueBegin:
				continue
			case lnsConstAddPC:
				ops := opIndex + constAdvance
				pc += minInst * (ops / maxOps)
				opIndex = ops % maxOps
				continue
			case lnsFixedAdvancePC:
				c.pos = p
				pc += uint64(c.u16())
				opIndex = 0
				p = c.pos
				continue
			default:
				for range t.opLens[op-1] {
					if _, p = uleb(prog, p); p < 0 {
						what = "operand"
						break program
					}
				}
				continue
			case 0:
				c.pos = p
				size := c.uleb()
				arg := cursor{buf: c.take(size), big: c.big}
				if c.bad {
					what = "extended opcode"
					break program
				}
				p = c.pos
				if size == 0 {
					continue
				}
				switch arg.u8() {
				case lneSetAddress:
					pc, opIndex = arg.word(uint8(min(size-1, 0xff))), 0
					dead = arg.bad || pc >= top-1 || pc == 0 && !d.sec.zeroCode
				case lneDefineFile:
					d.defineFile(u, arg, uint64(p)-size)
				case lneEndSequence:
					if open && low < pc && pc-low <= 1<<32-1 {
						if keep {
							if unsorted {
								slices.SortStableFunc(rows[first:], func(a, b lineRow) int { return cmp.Compare(a.addr, b.addr) })
							}
							seqs = append(seqs, sequence{low, pc, uint32(first), uint32(len(rows) - first)})
							first = len(rows)
						} else if pc > addr && pc < bestHi {
							best, bestLo, bestHi = near, low, pc
						}
					}
					rows = rows[:first]
					open, unsorted = false, false
					pc, opIndex, line, file, column = 0, 0, 1, 1, 0
				}
				continue
			}
		}
		// A row.
		if dead {
			continue
		}
		if !open {
			open, low, last, nearPC = true, pc, 0, pc
			dead = pc == 0 && !d.sec.zeroCode
		}
		if !keep {
			if pc <= addr && pc >= nearPC {
				near, nearPC = lineHit{line, file, column, true}, pc
			}
			continue
		}
		if rel := pc - low; rel <= 1<<32-1 { // else it is before the sequence's start or behind its end
			rows = append(rows, lineRow{uint32(rel), line, file, column})
			unsorted = unsorted || uint32(rel) < last
			last = uint32(rel)
		}
	}
	d.spend(n)
	t.files.defined = true
	if what != "" {
		u.damaged("line table at %#x: %s", u.stmtList.u, what)
	}
	if keep {
		slices.SortStableFunc(seqs, func(a, b sequence) int { return cmp.Compare(a.hi, b.hi) })
		t.rows, t.seqs = slices.Clone(rows[:first]), slices.Clip(seqs)
	}
	d.rows = rows
	if bestLo > addr || !best.ok {
		return lineHit{}
	}
	return best
}
