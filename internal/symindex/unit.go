package symindex

import "encoding/binary"

// A Unit collects the rows and calls of one unit. Names and files are positions, from 1, in the
// lists for [Writer.AddUnit]; 0 means none. A Unit is not safe for concurrent use, but several
// goroutines may each fill a Unit.
type Unit struct {
	rows, calls []byte
	dir         []dirEntry
	inBlock     int
	prev        row
	count       int
}

type dirEntry struct {
	addr uint64
	off  uint32
}

// A row is a decoded Row; call and file are 0 for none.
type row struct {
	addr         uint64
	call         uint64 // offset of the call plus 1
	file         uint64
	usual        bool // the file is the call's usual file; decodeRow then sets file to 0
	line, column uint64
}

// A Call is a function, or a function inlined into Parent.
type Call struct {
	Name         uint32
	Parent       uint32 // result of AddCall; 0 for a function
	File         uint32 // place of the call in the source of Parent
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

// Reset removes all rows and calls from u. It keeps the memory for reuse.
func (u *Unit) Reset() { *u = Unit{rows: u.rows[:0], calls: u.calls[:0], dir: u.dir[:0]} }

// Rows returns the number of rows in u.
func (u *Unit) Rows() int { return u.count }

// AddCall adds a call. It returns the call's number, for rows and other calls.
func (u *Unit) AddCall(c Call) uint32 {
	number := uint32(len(u.calls)) + 1
	b := binary.AppendUvarint(u.calls, uint64(c.Name))
	b = binary.AppendUvarint(b, uint64(c.Usual))
	if c.Parent == 0 {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(number-c.Parent))
		b = binary.AppendUvarint(b, uint64(c.File))
		b = binary.AppendUvarint(b, uint64(c.Line))
		b = binary.AppendUvarint(b, uint64(c.Column))
	}
	u.calls = b
	return number
}

// AddRow adds a row. usual means that the row's file is the Usual file of its call. Rows must come
// in ascending order of addresses. AddRow skips a row that differs from the previous one only in
// its address.
func (u *Unit) AddRow(r Row, usual bool) {
	now := row{r.Addr, uint64(r.Call), uint64(r.File), usual && r.File != 0, uint64(r.Line), uint64(r.Column)}
	if now.file == 0 {
		now.line, now.column = 0, 0
	}
	if p := &u.prev; u.count > 0 && p.call == now.call && p.file == now.file && p.line == now.line && p.column == now.column {
		return
	}
	// not expected: the previous row would cover no bytes
	if u.count > 0 && u.prev.addr == now.addr {
		return
	}
	u.count++
	prev := u.prev
	u.prev = now
	if u.inBlock == rowsInBlock || u.count == 1 {
		u.dir = append(u.dir, dirEntry{now.addr, uint32(len(u.rows))})
		u.inBlock = 0
		prev = row{addr: now.addr - 1}
	}
	u.inBlock++

	advance := now.addr - prev.addr
	flags := byte(min(advance-1, longAdvance)) << shortShift
	switch {
	case now.call == prev.call:
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
	b := append(u.rows, flags)
	if advance > longAdvance {
		b = binary.AppendUvarint(b, advance)
	}
	if flags&rowCall == newCall {
		b = binary.AppendVarint(b, int64(now.call-prev.call))
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
	u.rows = b
}

// decodeRow decodes the row after prev. n is its length in bytes; 0 if it is malformed.
func decodeRow(b []byte, prev row) (now row, n int) {
	if len(b) == 0 {
		return row{}, 0
	}
	r := varints{b: b, at: 1}
	flags := b[0]
	now = prev
	if short := flags >> shortShift; short < longAdvance {
		now.addr += uint64(short) + 1
	} else {
		now.addr += r.unsigned()
	}
	switch flags & rowCall {
	case sameCall:
	case noCall:
		now.call = 0
	case newCall:
		now.call += uint64(r.signed())
	default:
		r.bad = true
	}
	switch flags & rowFile {
	case sameFile:
	case callsFile:
		now.usual, now.file = true, 0
	case newFile:
		now.usual, now.file = false, r.unsigned()
	case noFile:
		now.usual, now.file = false, 0
	}
	if flags&nextLine != 0 {
		now.line++
	} else {
		now.line += uint64(r.signed())
	}
	if flags&sameColumn == 0 {
		now.column = r.unsigned()
	}
	if r.bad {
		return row{}, 0
	}
	return now, r.at
}

// A varints decodes numbers. bad is set by a malformed number or the end of b.
type varints struct {
	b   []byte
	at  int
	bad bool
}

func (v *varints) unsigned() uint64 {
	if v.at < len(v.b) && v.b[v.at] < 0x80 { // the usual case
		v.at++
		return uint64(v.b[v.at-1])
	}
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
