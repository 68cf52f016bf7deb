package object

import (
	"cmp"
	"debug/elf"
	"slices"
	"unsafe"
)

// An unwind has the bounds of functions, from unwind information. The zero value means that nothing
// was read yet.
type unwind struct {
	d      *sectionData  // nil until UnwindRange is called
	table  []byte        // the search table of .eh_frame_hdr, and the bytes after it
	count  uint64        // entries of that table; 0: none
	base   uint64        // address that the entries are relative to
	ranges []unwindRange // if there is no search table: all functions, sorted by start
}

type unwindRange struct{ start, end uint64 }

func (u *unwind) footprint() int64 { return int64(cap(u.ranges)) * int64(unsafe.Sizeof(unwindRange{})) }

// UnwindRange returns the bounds of the function at addr, from .eh_frame, or on 32-bit Arm from
// .ARM.exidx, where a function ends at the next one. ok is false if no unwind information covers
// addr. Unwind information has no names, but remains in stripped files. A function that the
// compiler split (".cold") has several ranges. If .eh_frame_hdr has no table, the first call scans
// all of .eh_frame and builds a table.
func (f *File) UnwindRange(addr uint64) (start, end uint64, ok bool) {
	if f.closed {
		return 0, 0, false
	}
	u := &f.unwind
	if u.d == nil {
		u.d = &f.sectionData
		u.find()
	}
	return u.at(addr)
}

func (u *unwind) at(addr uint64) (start, end uint64, ok bool) {
	if u.count > 0 {
		return u.search(addr)
	}
	i, exact := slices.BinarySearchFunc(u.ranges, addr, func(r unwindRange, addr uint64) int { return cmp.Compare(r.start, addr) })
	if !exact {
		i--
	}
	if i < 0 || addr >= u.ranges[i].end {
		return 0, 0, false
	}
	return u.ranges[i].start, u.ranges[i].end, true
}

// unwindSeparates reports whether, by unwind information, start and addr are in different
// functions. start is less than addr.
func (f *File) unwindSeparates(start, addr uint64) bool {
	if begin, _, ok := f.UnwindRange(addr); ok {
		return begin > start
	}
	_, end, ok := f.UnwindRange(start)
	return ok && addr >= end
}

func (u *unwind) find() {
	d := u.d
	if d.Machine == elf.EM_ARM {
		u.readExidx()
		return
	}
	header := uint64(0)
	if s := d.section(".eh_frame_hdr"); s != nil && s.Type != elf.SHT_NOBITS {
		header = s.Addr
	} else {
		for i := range d.segments {
			if p := &d.segments[i]; p.Type == elf.PT_GNU_EH_FRAME && p.FileSize > 0 {
				header = p.Addr
			}
		}
	}
	frames := uint64(0)
	if header != 0 {
		frames = u.readHeader(header)
		if u.count > 0 {
			return
		}
	}
	data := []byte(nil)
	if s := d.section(".eh_frame"); s != nil && s.Type != elf.SHT_NOBITS && s.Flags&elf.SHF_ALLOC != 0 && d.Type != elf.ET_REL {
		frames = s.Addr
		data, _ = d.tableData(s)
	} else if frames != 0 {
		data = d.Loaded(frames)
	}
	u.walk(data, frames)
}

// readHeader reads .eh_frame_hdr, which begins at the given address. It returns the address of
// .eh_frame, or 0 if the header has none.
func (u *unwind) readHeader(at uint64) (frames uint64) {
	b := u.d.Loaded(at)
	if len(b) < 4 || b[0] != 1 {
		return 0
	}
	c := cursor{h: &u.d.header, data: b, addr: at, base: at, at: 4}
	frames = c.pointer(b[1])
	count := c.pointer(b[2])
	if c.bad || b[2] == peOmit || b[3] != peDataRel|peS4 || count == 0 || count > uint64(len(b)-c.at)/8 || count > maxUnwind {
		return frames
	}
	u.table, u.count, u.base = b[c.at:], count, at
	return frames
}

func (u *unwind) search(addr uint64) (start, end uint64, ok bool) {
	h, table := &u.d.header, u.table
	if uint64(len(table)) < u.count*8 {
		return 0, 0, false
	}
	place := func(b []byte) uint64 { return h.wrap(u.base + uint64(int64(int32(h.u32(b))))) }
	lo, hi := uint64(0), u.count // the first entry above addr is in [lo, hi]
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
	start, end, _, ok = u.frameAt(u.d.Loaded(at), at, 0, nil)
	return start, end, ok && addr >= start && addr < end
}

// walk makes a table of all functions in data, the .eh_frame at addr.
func (u *unwind) walk(data []byte, addr uint64) {
	encodings := make(map[uint64]byte)
	for at := uint64(0); at < uint64(len(data)) && len(u.ranges) < maxUnwind; {
		start, end, next, ok := u.frameAt(data, addr, at, encodings)
		if ok {
			u.ranges = append(u.ranges, unwindRange{start, end})
		}
		if next <= at {
			break
		}
		at = next
	}
	u.sort()
}

func (u *unwind) sort() {
	slices.SortFunc(u.ranges, func(a, b unwindRange) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	u.ranges = slices.Clip(u.ranges)
}

// frameAt reads the entry at data[at:]; data begins at the address addr. It returns the bounds of
// the entry's function, if any, and the offset of the next entry, or 0 at the end. encodings, if
// not nil, caches the encodings of common entries (CIEs) by offset.
func (u *unwind) frameAt(data []byte, addr, at uint64, encodings map[uint64]byte) (start, end, next uint64, ok bool) {
	c := cursor{h: &u.d.header, data: data, addr: addr, at: int(at)}
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
	if c.bad || id == 0 { // a common entry (CIE), which describes no function
		return 0, 0, next, false
	}
	common := idAt - id // offset in data; wrapped if the entry is loaded before data
	encoding, known := encodings[common]
	if !known {
		var ok bool
		if common < idAt {
			encoding, ok = u.frameEncoding(data, common)
		} else {
			encoding, ok = u.frameEncoding(u.d.Loaded(addr+common), 0)
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
	end = u.d.wrap(start + size)
	return start, end, next, !c.bad && size != 0 && end > start && encoding&peIndirect == 0
}

// frameEncoding returns the pointer encoding of functions' addresses from the common entry at
// data[at:].
func (u *unwind) frameEncoding(data []byte, at uint64) (encoding byte, ok bool) {
	c := cursor{h: &u.d.header, data: data, at: int(at)}
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
	c.uleb() // data alignment: signed, but skipped alike
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
// Architecture, 5). The section holds only the starts of functions: each ends where the next
// begins.
func (u *unwind) readExidx() {
	d := u.d
	var addr, size uint64
	for i := range d.segments {
		const ptArmExidx = 0x70000001
		if p := &d.segments[i]; p.Type == ptArmExidx {
			addr, size = p.Addr, p.FileSize
		}
	}
	data := d.Loaded(addr)
	data = data[:min(size, uint64(len(data)))]
	var starts []uint64
	for at := uint64(0); at+8 <= uint64(len(data)) && len(starts) < maxUnwind; at += 8 {
		offset := int32(d.u32(data[at:])<<1) >> 1 // 31 bits, signed
		starts = append(starts, d.wrap(addr+at+uint64(int64(offset)))&^1)
	}
	slices.Sort(starts)
	for i := range starts {
		end := starts[i] + 1<<31
		if i+1 < len(starts) {
			end = starts[i+1]
		} else if s := d.codeSection(starts[i]); s != nil {
			end = s.Addr + s.Size
		}
		if d.ExecCovers(starts[i]) && end > starts[i] {
			u.ranges = append(u.ranges, unwindRange{starts[i], end})
		}
	}
	u.sort()
}
