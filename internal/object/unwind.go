package object

import (
	"debug/elf"
	"slices"
	"unsafe"
)

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

// unwind has the bounds of functions, from the information for unwinding.
type unwind struct {
	tried  bool
	table  []byte        // the search table of .eh_frame_hdr, and what follows
	count  uint64        // entries of that table; 0: none
	base   uint64        // address that the entries are relative to
	ranges []unwindRange // without such a table: all functions, sorted by start
}

type unwindRange struct{ start, end uint64 }

func (u *unwind) footprint() int64 { return int64(cap(u.ranges)) * int64(unsafe.Sizeof(unwindRange{})) }

// UnwindRange returns the bounds of the function at addr by .eh_frame, or on 32-bit Arm by
// .ARM.exidx, in which a function ends where the next begins. It has no names, but stays in
// stripped files. A function that the compiler split (".cold") has several ranges. ok is false if
// no unwind information covers addr. Without the table of .eh_frame_hdr the first call scans all of
// .eh_frame and builds one.
func (f *File) UnwindRange(addr uint64) (start, end uint64, ok bool) {
	if f.closed {
		return 0, 0, false
	}
	u := &f.unwind
	if !u.tried {
		u.tried = true
		f.findUnwind()
	}
	if u.count > 0 {
		return f.searchUnwindTable(addr)
	}
	i, exact := slices.BinarySearchFunc(u.ranges, addr, func(r unwindRange, addr uint64) int {
		switch {
		case r.start < addr:
			return -1
		case r.start > addr:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || addr >= u.ranges[i].end {
		return 0, 0, false
	}
	return u.ranges[i].start, u.ranges[i].end, true
}

// unwindSeparates reports whether addr is in another function than start, a lower address.
func (f *File) unwindSeparates(start, addr uint64) bool {
	if begin, _, ok := f.UnwindRange(addr); ok {
		return begin > start
	}
	_, end, ok := f.UnwindRange(start)
	return ok && addr >= end
}

// findUnwind finds the table, or makes one.
func (f *File) findUnwind() {
	if f.Machine == elf.EM_ARM {
		f.readExidx()
		return
	}
	header := uint64(0)
	if s := f.section(".eh_frame_hdr"); s != nil && s.Type != elf.SHT_NOBITS {
		header = s.Addr
	} else {
		for i := range f.segments {
			if p := &f.segments[i]; p.Type == elf.PT_GNU_EH_FRAME && p.FileSize > 0 {
				header = p.Addr
			}
		}
	}
	frames := uint64(0)
	if header != 0 {
		frames = f.readUnwindHeader(header)
		if f.unwind.count > 0 {
			return
		}
	}
	data := []byte(nil)
	if s := f.section(".eh_frame"); s != nil && s.Type != elf.SHT_NOBITS && s.Flags&elf.SHF_ALLOC != 0 && f.Type != elf.ET_REL {
		frames = s.Addr
		data, _ = f.tableData(s)
	} else if frames != 0 {
		data = f.Loaded(frames)
	}
	f.walkFrames(data, frames)
}

// readUnwindHeader reads .eh_frame_hdr at an address and returns the address of .eh_frame, or 0 if
// it has none.
func (f *File) readUnwindHeader(at uint64) (frames uint64) {
	b := f.Loaded(at)
	if len(b) < 4 || b[0] != 1 {
		return 0
	}
	c := cursor{f: f, data: b, addr: at, base: at, at: 4}
	frames = c.pointer(b[1])
	count := c.pointer(b[2])
	if c.bad || b[2] == peOmit || b[3] != peDataRel|peS4 || count == 0 || count > uint64(len(b)-c.at)/8 || count > maxUnwind {
		return frames
	}
	f.unwind.table, f.unwind.count, f.unwind.base = b[c.at:], count, at
	return frames
}

// searchUnwindTable finds the entry whose function covers addr.
func (f *File) searchUnwindTable(addr uint64) (start, end uint64, ok bool) {
	u := &f.unwind
	table := u.table
	if uint64(len(table)) < u.count*8 {
		return 0, 0, false
	}
	place := func(b []byte) uint64 { return f.wrap(u.base + uint64(int64(int32(f.header.u32(b))))) }
	lo, hi := uint64(0), u.count // the first above addr is in [lo, hi]
	for lo < hi {
		if mid := (lo + hi) / 2; place(table[mid*8:]) <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0, 0, false
	}
	at := place(table[(lo-1)*8+4:])
	start, end, _, ok = f.frameAt(f.Loaded(at), at, 0, nil)
	return start, end, ok && addr >= start && addr < end
}

// walkFrames makes a table of all functions in data, which is .eh_frame at an address.
func (f *File) walkFrames(data []byte, addr uint64) {
	encodings := make(map[uint64]byte)
	for at := uint64(0); at < uint64(len(data)) && len(f.unwind.ranges) < maxUnwind; {
		start, end, next, ok := f.frameAt(data, addr, at, encodings)
		if ok {
			f.unwind.ranges = append(f.unwind.ranges, unwindRange{start, end})
		}
		if next <= at {
			break
		}
		at = next
	}
	f.sortUnwind()
}

func (f *File) sortUnwind() {
	slices.SortFunc(f.unwind.ranges, func(a, b unwindRange) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		case a.end < b.end:
			return -1
		case a.end > b.end:
			return 1
		}
		return 0
	})
	f.unwind.ranges = slices.Clip(f.unwind.ranges)
}

// frameAt reads the entry at data[at:], where data begins at addr: the bounds of its function, if
// it has one, and the offset of the next entry; 0 if there is none. encodings, if not nil,
// remembers those of common entries.
func (f *File) frameAt(data []byte, addr, at uint64, encodings map[uint64]byte) (start, end, next uint64, ok bool) {
	c := cursor{f: f, data: data, addr: addr, at: int(at)}
	length := uint64(c.u32())
	if length == 0xffffffff {
		length = c.u64()
	}
	if c.bad || length == 0 || length > uint64(len(data)-c.at) {
		return 0, 0, 0, false
	}
	next = uint64(c.at) + length
	c.data = data[:next]
	idAt := uint64(c.at)
	id := uint64(c.u32())
	if c.bad || id == 0 { // a common entry
		return 0, 0, next, false
	}
	common := idAt - id // in data, or in the bytes loaded before it
	encoding, known := encodings[common]
	if !known {
		var ok bool
		if common < idAt {
			encoding, ok = f.frameEncoding(data, common)
		} else {
			encoding, ok = f.frameEncoding(f.Loaded(addr+common), 0)
		}
		if !ok {
			return 0, 0, next, false
		}
		if encodings != nil && len(encodings) < maxCommon {
			encodings[common] = encoding
		}
	}
	start = c.pointer(encoding)
	size := c.pointer(encoding & 0x0f)
	end = f.wrap(start + size)
	return start, end, next, !c.bad && size != 0 && end > start && encoding&peIndirect == 0
}

// frameEncoding returns the pointer encoding of the functions of the common entry at data[at:].
func (f *File) frameEncoding(data []byte, at uint64) (encoding byte, ok bool) {
	c := cursor{f: f, data: data, at: int(at)}
	length := uint64(c.u32())
	if length == 0xffffffff {
		length = c.u64()
	}
	if c.bad || length == 0 || length > uint64(len(data)-c.at) {
		return 0, false
	}
	c.data = data[:uint64(c.at)+length]
	if c.u32() != 0 || c.bad { // not a common entry
		return 0, false
	}
	version := c.u8()
	begin := c.at
	for b := c.u8(); b != 0 && !c.bad; b = c.u8() {
		if c.at-begin > 16 {
			return 0, false
		}
	}
	if c.bad {
		return 0, false
	}
	augmentation := c.data[begin : c.at-1]
	if len(augmentation) == 0 {
		return pePointer, !c.bad
	}
	if augmentation[0] != 'z' {
		return 0, false
	}
	c.uleb() // code alignment
	c.uleb() // data alignment, signed: of the same length
	if version == 1 {
		c.u8()
	} else {
		c.uleb()
	}
	c.uleb() // length of the augmentation data
	for _, a := range augmentation[1:] {
		switch a {
		case 'R':
			encoding = c.u8()
		case 'P':
			c.pointer(c.u8() &^ peIndirect)
		case 'L':
			c.u8()
		case 'S', 'B', 'G':
		default:
			return encoding, false
		}
	}
	return encoding, !c.bad
}

// readExidx makes a table of the functions in .ARM.exidx (Exception Handling ABI for the Arm
// Architecture, 5): their starts.
func (f *File) readExidx() {
	var addr, size uint64
	for i := range f.segments {
		const ptArmExidx = 0x70000001
		if p := &f.segments[i]; p.Type == ptArmExidx {
			addr, size = p.Addr, p.FileSize
		}
	}
	data := f.Loaded(addr)
	data = data[:min(size, uint64(len(data)))]
	var starts []uint64
	for at := uint64(0); at+8 <= uint64(len(data)) && len(starts) < maxUnwind; at += 8 {
		offset := int32(f.header.u32(data[at:])<<1) >> 1 // 31 bits, signed
		starts = append(starts, f.wrap(addr+at+uint64(int64(offset)))&^1)
	}
	slices.Sort(starts)
	for i := range starts {
		end := starts[i] + 1<<31
		if i+1 < len(starts) {
			end = starts[i+1]
		} else if s := f.codeSection(starts[i]); s != nil {
			end = s.Addr + s.Size
		}
		if f.ExecCovers(starts[i]) && end > starts[i] {
			f.unwind.ranges = append(f.unwind.ranges, unwindRange{starts[i], end})
		}
	}
	f.sortUnwind()
}

// codeSection returns the executable section that covers addr.
func (f *File) codeSection(addr uint64) *Section {
	for _, i := range f.exec {
		if s := &f.sections[i]; s.covers(addr) {
			return s
		}
	}
	return nil
}

// wrap cuts an address to the width of the file's addresses.
func (f *File) wrap(addr uint64) uint64 {
	if f.header.is64 {
		return addr
	}
	return addr & 0xffffffff
}

// A cursor reads numbers from data, which is loaded at addr. After the end it reads zeros, and is
// bad.
type cursor struct {
	f    *File
	data []byte
	addr uint64
	base uint64 // of pointers relative to data
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
func (c *cursor) u16() uint16 { return c.f.header.u16(c.take(2)) }
func (c *cursor) u32() uint32 { return c.f.header.u32(c.take(4)) }
func (c *cursor) u64() uint64 { return c.f.header.u64(c.take(8)) }

// uleb reads an unsigned LEB128 number, or skips a signed one; at most ten bytes.
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

// pointer reads a pointer in an encoding.
func (c *cursor) pointer(encoding byte) (v uint64) {
	at := c.addr + uint64(c.at)
	switch encoding & 0x0f {
	case pePointer:
		if c.f.header.is64 {
			v = c.u64()
		} else {
			v = uint64(c.u32())
		}
	case peULEB:
		v = c.uleb()
	case peSLEB:
		v = c.uleb() // only to skip it
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
	return c.f.wrap(v)
}
