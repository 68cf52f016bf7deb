package dwarf

import (
	"bytes"
	"encoding/binary"
)

// A cursor reads forward through untrusted bytes. Its error is sticky: a read past the end sets
// bad, and all later reads return zero. So a sequence of reads needs one check, before the first
// use of a value.
type cursor struct {
	buf []byte
	pos int // never outside 0..len(buf)
	big bool
	bad bool
}

// cursorAt returns a cursor at an offset from a file. If the offset is outside buf, the cursor is
// bad from the start.
func cursorAt(buf []byte, off uint64, big bool) cursor {
	if off > uint64(len(buf)) {
		return cursor{buf: buf, pos: len(buf), big: big, bad: true}
	}
	return cursor{buf: buf, pos: int(off), big: big}
}

func (c *cursor) fail() {
	c.bad = true
	c.pos = len(c.buf)
}

func (c *cursor) left() int { return len(c.buf) - c.pos }

// take returns the next n bytes. If fewer bytes are left, it returns nil and makes the cursor bad.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.buf)-c.pos) {
		c.fail()
		return nil
	}
	b := c.buf[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if c.pos >= len(c.buf) {
		c.fail()
		return 0
	}
	v := c.buf[c.pos]
	c.pos++
	return v
}

func (c *cursor) u16() uint16 {
	b := c.take(2)
	if b == nil {
		return 0
	}
	if c.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (c *cursor) u24() uint32 {
	b := c.take(3)
	if b == nil {
		return 0
	}
	if c.big {
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	}
	return uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

func (c *cursor) u32() uint32 {
	b := c.take(4)
	if b == nil {
		return 0
	}
	return load32(b, c.big)
}

func (c *cursor) u64() uint64 {
	b := c.take(8)
	if b == nil {
		return 0
	}
	return load64(b, c.big)
}

// word reads an unsigned integer of size 1, 2, 4 or 8 bytes: an address or an offset.
func (c *cursor) word(size uint8) uint64 {
	switch size {
	case 8:
		return c.u64()
	case 4:
		return uint64(c.u32())
	case 2:
		return uint64(c.u16())
	case 1:
		return uint64(c.u8())
	}
	c.fail()
	return 0
}

// length reads a unit_length (DWARF 5, 7.4). It returns the number of following bytes, and the size
// of offsets in them. A length that reaches beyond the end makes the cursor bad.
func (c *cursor) length() (n int, offSize uint8) {
	v, offSize := uint64(c.u32()), uint8(4)
	if v == 0xffffffff {
		v, offSize = c.u64(), 8
	} else if v >= 0xfffffff0 {
		c.fail()
	}
	if v > uint64(c.left()) {
		c.fail()
	}
	if c.bad {
		return 0, offSize
	}
	return int(v), offSize
}

// uleb reads an unsigned LEB128 of any length. It drops bits beyond the 64th.
func (c *cursor) uleb() uint64 {
	v, n := uleb(c.buf, c.pos)
	if n < 0 {
		c.fail()
		return 0
	}
	c.pos = n
	return v
}

func (c *cursor) sleb() int64 {
	var v uint64
	for shift := uint(0); c.pos < len(c.buf); {
		x := c.buf[c.pos]
		c.pos++
		if shift < 64 {
			v |= uint64(x&0x7f) << shift
			shift += 7
		}
		if x < 0x80 {
			if x&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			return int64(v)
		}
	}
	c.fail()
	return 0
}

func (c *cursor) skipString() {
	n := bytes.IndexByte(c.buf[c.pos:], 0)
	if n < 0 {
		c.fail()
		return
	}
	c.pos += n + 1
}

// uleb reads an unsigned LEB128 at p, which may be the end of b. It returns the position after the
// number, or -1 if b ends first.
func uleb(b []byte, p int) (uint64, int) {
	var v uint64
	for shift := uint(0); p < len(b); shift += 7 {
		x := b[p]
		p++
		v |= uint64(x&0x7f) << shift // a shift of 64 or more gives 0
		if x < 0x80 {
			return v, p
		}
	}
	return 0, -1
}

func load32(b []byte, big bool) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func load64(b []byte, big bool) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// operand reads an unsigned operand, nearly always one byte. The position is -1 if the operand is
// cut off.
func operand(b []byte, p int) (uint64, int) {
	if p < len(b) && b[p] < 0x80 {
		return uint64(b[p]), p + 1
	}
	return uleb(b, p)
}

// signedOperand is operand for a signed operand; the value is its two's complement.
func signedOperand(b []byte, p int) (uint64, int) {
	if p < len(b) && b[p] < 0x80 {
		return uint64(int8(b[p]<<1) >> 1), p + 1
	}
	return sleb(b, p)
}

// sleb is uleb for a signed number.
func sleb(b []byte, p int) (uint64, int) {
	c := cursor{buf: b, pos: p}
	if v := c.sleb(); !c.bad {
		return uint64(v), c.pos
	}
	return 0, -1
}
