package symindex

import "encoding/binary"

// A Unit collects the rows and calls of one unit. Names and files are positions, from 1, in the
// lists for [Writer.AddUnit]; 0 means none. A Unit is not safe for concurrent use, but several
// goroutines may each fill a Unit.
type Unit struct {
	data   []byte // calls and blocks
	dir    []dirEntry
	block  [rowsInBlock]row // rows that are not in data yet
	n      int              // number of rows in block
	prev   row
	begins bool // the next row begins a span
}

// A row is a Row in the form in which it is encoded. call is 1 plus the offset of the row's call in
// Unit.data. call and file are 0 if unknown.
type row struct {
	addr         uint64
	call         uint64
	file         uint64
	usual        bool // the file is the call's usual file
	line, column uint64
}

// A Call is a function, or a function inlined into Parent.
type Call struct {
	Name         uint32
	Parent       uint32 // result of AddCall; 0 for a function
	File         uint32 // file of the call in the source of Parent; 0 if unknown
	Line, Column uint32
	Usual        uint32 // the file of most of the call's rows
}

// A Row assigns the code from Addr to the next Row to a call and a line.
type Row struct {
	Addr         uint64
	Call         uint32 // result of AddCall; 0 if unknown
	File         uint32 // 0 if no line is known
	Line, Column uint32
}

// AddCall adds a call. It returns the call's number, for rows and other calls.
func (u *Unit) AddCall(c Call) uint32 {
	number := uint32(len(u.data)) + 1
	b := binary.AppendUvarint(u.data, uint64(c.Name))
	b = binary.AppendUvarint(b, uint64(c.Usual))
	if c.Parent == 0 {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(number-c.Parent))
		b = binary.AppendUvarint(b, uint64(c.File))
		b = binary.AppendUvarint(b, uint64(c.Line))
		b = binary.AppendUvarint(b, uint64(c.Column))
	}
	u.data = b
	return number
}

// BeginSpan makes the next row begin a span of the unit.
func (u *Unit) BeginSpan() { u.begins = true }

// AddRow adds a row. usual must be set if the row's file is the file Usual of its call. Rows must
// come in ascending order of addresses. Within a span, AddRow skips a row that differs from the
// previous one only in its address.
func (u *Unit) AddRow(r Row, usual bool) {
	now := row{r.Addr, uint64(r.Call), uint64(r.File), usual && r.File != 0, uint64(r.Line), uint64(r.Column)}
	if now.file == 0 {
		now.line, now.column = 0, 0
	}
	if p := &u.prev; u.n > 0 && !u.begins && p.call == now.call && p.file == now.file && p.line == now.line && p.column == now.column {
		return
	}
	// two rows at one address are not expected: the first is kept
	if u.n > 0 && u.prev.addr == now.addr {
		return
	}
	if u.n == rowsInBlock || u.begins {
		u.endBlock()
	}
	u.block[u.n] = now
	u.n++
	u.prev, u.begins = now, false
}

// endBlock appends the rows of the current block to the data.
func (u *Unit) endBlock() {
	if u.n == 0 {
		return
	}
	u.dir = append(u.dir, dirEntry{u.block[0].addr, uint32(len(u.data))})
	last := uint64(len(u.data)) // offset of the block, then of the last call
	prev := row{addr: u.block[0].addr - 1}
	b := u.data
	for i := range u.block[:u.n] {
		now := &u.block[i]
		advance := now.addr - prev.addr
		flags := byte(min(advance-1, longAdvance)) << shortShift
		switch {
		case now.call == prev.call && i > 0:
			flags |= sameCall
		case now.call == 0:
			flags |= noCall
		default:
			flags |= newCall
		}
		switch {
		case now.file == 0:
			flags |= noFile
		case flags&rowCall == sameCall && now.file == prev.file && now.usual == prev.usual:
			flags |= sameFile
		case now.usual:
			flags |= callsFile
		default:
			flags |= newFile
		}
		if now.column == prev.column {
			flags |= sameColumn
		}
		if now.line == prev.line+1 {
			flags |= nextLine
		}
		b = append(b, flags)
		if advance > longAdvance {
			b = binary.AppendUvarint(b, advance)
		}
		if flags&rowCall == newCall {
			b = binary.AppendVarint(b, int64(now.call-last))
			last = now.call
		}
		if flags&rowFile == newFile {
			b = binary.AppendUvarint(b, now.file)
		}
		if flags&nextLine == 0 {
			b = binary.AppendVarint(b, int64(now.line-prev.line))
		}
		if flags&sameColumn == 0 {
			b = binary.AppendUvarint(b, now.column)
		}
		prev = *now
	}
	if u.n < rowsInBlock {
		b = append(b, blockEnd)
	}
	u.data, u.n = b, 0
}

// findRow returns the last row of a block that is at most distance bytes after the block's first
// row. The parameter at is the block's offset in the unit. ok is false if the block is malformed.
// The address of the returned row is not set. If usual is set, its file is not set either.
func findRow(block []byte, at, distance uint64) (r row, ok bool) {
	v := varints{b: block}
	last := at
	for i := range rowsInBlock {
		if v.at == len(block) {
			return row{}, false
		}
		flags := block[v.at]
		if flags == blockEnd && i > 0 {
			break
		}
		v.at++
		advance := uint64(flags>>shortShift) + 1
		if advance > longAdvance {
			advance = v.unsigned()
		}
		if i > 0 {
			if advance > distance {
				break
			}
			distance -= advance
		}
		switch flags & rowCall {
		case sameCall:
		case noCall:
			r.call = 0
		case newCall:
			last += uint64(v.signed())
			r.call = last
		default:
			return row{}, false
		}
		switch flags & rowFile {
		case sameFile:
		case callsFile:
			r.usual, r.file = true, 0
		case newFile:
			r.usual, r.file = false, v.unsigned()
		case noFile:
			r.usual, r.file = false, 0
		}
		if flags&nextLine != 0 {
			r.line++
		} else {
			r.line += uint64(v.signed())
		}
		if flags&sameColumn == 0 {
			r.column = v.unsigned()
		}
		if v.bad {
			return row{}, false
		}
	}
	return r, !v.bad
}

// A varints decodes numbers from b, beginning at the offset at. bad is set if a number is malformed
// or b ends.
type varints struct {
	b   []byte
	at  int
	bad bool
}

func (v *varints) unsigned() uint64 {
	if v.at < len(v.b) {
		if c := v.b[v.at]; c < 0x80 { // the usual case, which is inlined
			v.at++
			return uint64(c)
		}
	}
	return v.long()
}

func (v *varints) long() uint64 {
	if v.at+1 < len(v.b) && v.b[v.at+1] < 0x80 {
		v.at += 2
		return uint64(v.b[v.at-2]&0x7f) | uint64(v.b[v.at-1])<<7
	}
	x, n := binary.Uvarint(v.b[min(v.at, len(v.b)):])
	if n <= 0 {
		v.bad = true
		return 0
	}
	v.at += n
	return x
}

func (v *varints) signed() int64 {
	u := v.unsigned()
	return int64(u>>1) ^ -int64(u&1)
}
