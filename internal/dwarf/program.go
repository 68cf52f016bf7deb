package dwarf

// A special is the effect of a special opcode (DWARF 5, 6.2.5.1).
type special struct {
	advance uint16 // added to the address: bytes, or operations if an instruction holds several
	line    int16
}

func (t *lineTable) specials(table *[256]special) {
	unit := uint16(t.advanceUnit())
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
}

// advanceUnit returns the factor for operands that advance the address: the bytes of the shortest
// instruction. It returns 1 if an instruction holds several operations, because the operands then
// count operations.
func (t *lineTable) advanceUnit() uint8 {
	if t.maxOps > 1 {
		return 1
	}
	return t.minInst
}

// registers are the part of a line program's state (DWARF 5, 6.2.2) that rows need.
type registers struct {
	pc      uint64
	opIndex uint64 // operation within a VLIW instruction; 0 on other machines
	line    uint32
	file    uint16
	column  uint16
}

func (r *registers) hit() lineHit { return lineHit{r.line, r.file, r.column, true} }

// A lineRun runs a line program from one row to the next:
//
//	for m.running() {
//		for m.next() {
//			// m.registers holds a row
//		}
//		// a sequence has ended, with the addresses [m.lo,m.hi)
//	}
//
// It leaves out rows of code that the linker discarded.
type lineRun struct {
	registers
	d       *Data
	u       *unit
	t       *lineTable
	prog    []byte
	start   int // position of the first opcode of this run
	pos     int // position of the next opcode; -1 after an operand that is cut off
	special [256]special
	opBase  uint8
	unit    uint64 // see advanceUnit
	vliw    bool   // instructions hold several operations
	top     uint64 // next leaves out rows with a higher address

	opened bool   // the current sequence has a row
	dead   bool   // the linker discarded the current sequence's code
	live   bool   // opened, and not dead
	low    uint64 // address of the current sequence's first row

	lo, hi uint64 // addresses of the sequence that just ended; equal if it has no code

	discriminating bool   // row returns discriminators instead of lines
	discriminator  uint32 // discriminator of the current row, if discriminating is set

	files [][2]int // start and end in prog of each DW_LNE_define_file, for finish
}

// begin prepares a run of the whole line program of u.
func (m *lineRun) begin(d *Data, u *unit) {
	t := &u.lines
	m.d, m.u, m.t = d, u, t
	m.prog, m.start, m.pos = t.program.buf, t.program.pos, t.program.pos
	t.specials(&m.special)
	m.opBase, m.unit, m.vliw = max(1, t.opBase), uint64(t.advanceUnit()), t.maxOps > 1
	m.top = ^uint64(0)
	m.registers = registers{line: 1, file: 1}
	m.opened, m.dead, m.live = false, false, false
	m.discriminating = false
	m.files = m.files[:0]
}

// resume makes the run continue at a stop, and end at the position end in the program.
func (m *lineRun) resume(from *lineStop, end uint64) {
	m.prog, m.start, m.pos = m.prog[:end], int(from.pos), int(from.pos)
	m.opened, m.live = true, true
	m.registers, m.low = from.registers, from.pc
}

// running reports whether the program has opcodes left.
func (m *lineRun) running() bool { return uint(m.pos) < uint(len(m.prog)) }

// finish completes the file table, adds the bytes of the run to Data.read, and reports a damaged
// program. Before finish, the run only reads the unit, which another goroutine may use meanwhile.
func (m *lineRun) finish() {
	for _, at := range m.files {
		m.u.defineFile(cursor{buf: m.prog[at[0]:at[1]], pos: 1, big: m.t.program.big}, uint64(at[0]))
	}
	m.t.files.defined = true
	m.d.read += int64(len(m.prog) - m.start)
	if m.pos < 0 {
		m.u.damaged("line table at %#x: program", m.u.stmtList.u)
	}
}

// A linePlace is a position between two sequences of a line program, for goBack.
type linePlace struct {
	pos, files int
	dead       bool
}

func (m *lineRun) place() linePlace { return linePlace{m.pos, len(m.files), m.dead} }

func (m *lineRun) goBack(p linePlace) {
	m.pos, m.files, m.dead = p.pos, m.files[:p.files], p.dead
	m.opened, m.live = false, false
	m.registers = registers{line: 1, file: 1}
}

// next runs the program to the next row. It returns false at the end of a sequence or of the
// program.
func (m *lineRun) next() bool {
	m.lo, m.hi, m.discriminator = 0, 0, 0
	prog, p := m.prog, m.pos
	pc, line := m.pc, m.line // in variables: most opcodes change them
	for uint(p) < uint(len(prog)) {
		op := prog[p]
		p++
		if op >= m.opBase {
			s := m.special[op]
			line += uint32(int32(s.line))
			pc += m.bytes(uint64(s.advance))
		} else {
			var v uint64
			switch op {
			case lnsCopy:
			case lnsSetColumn:
				v, p = operand(prog, p)
				if m.column = uint16(v); v > 0xffff {
					m.column = 0
				}
				continue
			case lnsAdvanceLine:
				if uint(p) < uint(len(prog)) && prog[p] < 0x80 {
					line += uint32(int8(prog[p]<<1) >> 1)
					p++
					continue
				}
				if uint(p+1) < uint(len(prog)) && prog[p+1] < 0x80 {
					line += uint32(int32(uint32(prog[p]&0x7f)|uint32(prog[p+1])<<7) << 18 >> 18)
					p += 2
					continue
				}
				v, p = signedOperand(prog, p)
				line += uint32(v)
				continue
			case lnsNegateStmt, lnsSetBasicBlock, lnsSetPrologueEnd, lnsSetEpilogueBegin:
				continue
			case lnsSetFile:
				v, p = operand(prog, p)
				m.file = uint16(min(v, noFile))
				continue
			case lnsAdvancePC:
				v, p = operand(prog, p)
				pc += m.bytes(v * m.unit)
				continue
			case lnsConstAddPC:
				pc += m.bytes(uint64(m.special[255].advance))
				continue
			case 0:
				if end := p + 1; uint(end) < uint(len(prog)) && prog[end] > lneDefineFile {
					if end += int(prog[p]); prog[p] < 0x80 && end <= len(prog) {
						m.noteDiscriminator(prog[p+1 : end])
						p = end
						continue
					}
				}
				var ended bool
				m.pc, m.line = pc, line
				if p, ended = m.extended(p); ended {
					m.pos = p
					return false
				}
				pc, line = m.pc, m.line
				continue
			default:
				m.pc = pc
				p = m.rare(op, p)
				pc = m.pc
				continue
			}
		}
		if (m.live || m.open(pc)) && pc <= m.top {
			m.pc, m.line, m.pos = pc, line, p
			return true
		}
		m.discriminator = 0
	}
	m.pos = p
	return false
}

// noteDiscriminator sets the discriminator of the next row if discriminating is set and op, an
// extended opcode with its operand, has one.
func (m *lineRun) noteDiscriminator(op []byte) {
	if m.discriminating && len(op) > 1 && op[0] == lneSetDiscriminator {
		v, _ := operand(op, 1)
		m.discriminator = clamp(v)
	}
}

// bytes converts the operand n of an advance to bytes. It returns n itself, unless instructions
// hold several operations.
func (m *lineRun) bytes(n uint64) uint64 {
	if m.vliw {
		n += m.opIndex
		m.opIndex = n % uint64(m.t.maxOps)
		n = n / uint64(m.t.maxOps) * uint64(m.t.minInst)
	}
	return n
}

// open starts a sequence with a row at pc. It returns false if the sequence already has a row, or
// if its code was discarded.
func (m *lineRun) open(pc uint64) bool {
	if m.opened || m.dead || pc == 0 && !m.d.sec.zeroCode {
		return false
	}
	m.opened, m.live, m.low = true, true, pc
	return true
}

// rare runs a standard opcode that few compilers write. It returns the position after its operands,
// or -1 if they are cut off.
func (m *lineRun) rare(op byte, p int) int {
	switch op {
	case lnsFixedAdvancePC:
		c := cursor{buf: m.prog, pos: p, big: m.t.program.big}
		m.pc += uint64(c.u16())
		m.opIndex = 0
		if c.bad {
			return -1
		}
		return c.pos
	}
	for range m.t.opLens[op-1] {
		if p >= 0 {
			_, p = uleb(m.prog, p)
		}
	}
	return p
}

// extended runs an extended opcode, whose length is at p. It returns the position after the opcode,
// or -1 if the opcode is cut off. ended reports whether the opcode ends a sequence.
func (m *lineRun) extended(p int) (next int, ended bool) {
	n, p := operand(m.prog, p)
	if p < 0 || n > uint64(len(m.prog)-p) {
		return -1, false
	}
	if n == 0 {
		return p, false
	}
	next = p + int(n)
	arg := cursor{buf: m.prog[p:next], pos: 1, big: m.t.program.big}
	switch arg.buf[0] {
	case lneSetAddress:
		m.pc, m.opIndex = arg.word(uint8(min(n-1, 0xff))), 0
		m.dead = arg.bad || m.pc >= m.t.enc.maxAddr()-1 || m.pc == 0 && !m.d.sec.zeroCode
		m.live = m.opened && !m.dead
	case lneDefineFile:
		if !m.t.files.defined && len(m.files) < maxFiles {
			m.files = append(m.files, [2]int{p, next})
		}
	case lneEndSequence:
		if m.opened && m.low < m.pc && m.pc-m.low <= maxSequence {
			m.lo, m.hi = m.low, m.pc
		}
		m.opened, m.live = false, false
		m.registers = registers{line: 1, file: 1}
		return next, true
	}
	return next, false
}
