package object

// Pointer encodings of .eh_frame and .eh_frame_hdr (Linux Standard Base 5.0, "DWARF Extensions").
const (
	pePointer  = 0x00
	peULEB     = 0x01
	peU2       = 0x02
	peU4       = 0x03
	peU8       = 0x04
	peSLEB     = 0x09
	peS2       = 0x0a
	peS4       = 0x0b
	peS8       = 0x0c
	pePCRel    = 0x10
	peDataRel  = 0x30
	peIndirect = 0x80
	peOmit     = 0xff
)

// A cursor reads numbers from data, which is loaded at addr. Beyond the end it reads zeros, and
// sets bad.
type cursor struct {
	h    *header
	data []byte
	addr uint64
	base uint64 // address that peDataRel pointers are relative to
	at   int
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || c.at < 0 || len(c.data)-c.at < n {
		c.bad = true
		return make([]byte, 8)
	}
	b := c.data[c.at : c.at+n]
	c.at += n
	return b
}

func (c *cursor) u8() byte    { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return c.h.u16(c.take(2)) }
func (c *cursor) u32() uint32 { return c.h.u32(c.take(4)) }
func (c *cursor) u64() uint64 { return c.h.u64(c.take(8)) }

// uleb reads an unsigned LEB128 number, or skips a signed one, of at most ten bytes.
func (c *cursor) uleb() (v uint64) {
	for shift := 0; shift < 70; shift += 7 {
		b := c.u8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) pointer(encoding byte) (v uint64) {
	at := c.addr + uint64(c.at)
	switch encoding & 0x0f {
	case pePointer:
		if c.h.is64 {
			v = c.u64()
		} else {
			v = uint64(c.u32())
		}
	case peULEB:
		v = c.uleb()
	case peSLEB:
		v = c.uleb() // skipped: the value of a signed number is not used
	case peU2:
		v = uint64(c.u16())
	case peS2:
		v = uint64(int64(int16(c.u16())))
	case peU4:
		v = uint64(c.u32())
	case peS4:
		v = uint64(int64(int32(c.u32())))
	case peU8, peS8:
		v = c.u64()
	default:
		c.bad = true
	}
	switch encoding & 0x70 {
	case 0:
	case pePCRel:
		v += at
	case peDataRel:
		v += c.base
	default:
		c.bad = true
	}
	return c.h.wrap(v)
}

// wrap cuts an address to the width of the file's addresses.
func (h *header) wrap(addr uint64) uint64 {
	if h.is64 {
		return addr
	}
	return addr & 0xffffffff
}
