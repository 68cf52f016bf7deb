package symindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

func update(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p) // made by the first call
}

// An Index is an open index. It is safe for concurrent use, except for Close. No content makes it
// panic or loop. A mapped file that shrinks makes it fault.
type Index struct {
	data   []byte
	body   []byte
	head   header
	sums   []byte
	sound  []atomic.Uint64 // one bit for each block, set once its checksum was verified
	mapped bool
}

// New checks the header and returns the index in data. data must not change while the Index is in
// use. Errors wrap ErrDamaged or ErrStale.
func New(data []byte) (*Index, error) {
	x := &Index{data: data}
	if err := x.head.decode(data); err != nil {
		return nil, err
	}
	h := &x.head
	size := uint64(len(data))
	if h.body < headerSize || h.body > size || size-h.body != 4*blocks(h.body) {
		return nil, fmt.Errorf("%d bytes: %w", size, ErrDamaged)
	}
	x.body, x.sums = data[:h.body], data[h.body:]
	if checksum(x.sums) != h.sumsCRC {
		return nil, fmt.Errorf("list of checksums: %w", ErrDamaged)
	}
	for _, s := range h.sections {
		if s.off < headerSize || s.off > h.body || s.size > h.body-s.off {
			return nil, fmt.Errorf("section table: %w", ErrDamaged)
		}
	}
	x.sound = make([]atomic.Uint64, (blocks(h.body)+63)/64)
	return x, nil
}

// Source returns the file that the index was made from.
func (x *Index) Source() Source { return x.head.source }

// IsOf reports whether the index was made from s.
func (x *Index) IsOf(s Source) bool {
	o := &x.head.source
	return bytes.Equal(o.ID, s.ID) && o.Size == s.Size && o.ModTime == s.ModTime
}

// Footprint returns the size of the index on the heap, in bytes.
func (x *Index) Footprint() int64 {
	n := int64(256 + 8*len(x.sound))
	if !x.mapped {
		n += int64(len(x.data))
	}
	return n
}

// bytesAt returns n bytes of the body at off, after a check of their blocks. It returns nil if the
// bytes are damaged or out of range, or if n is 0.
func (x *Index) bytesAt(off, n uint64) []byte {
	if off > uint64(len(x.body)) || n > uint64(len(x.body))-off || n == 0 {
		return nil
	}
	for b := off / blockSize; b <= (off+n-1)/blockSize; b++ {
		if x.sound[b>>6].Load()&(1<<(b&63)) == 0 && !x.check(b) {
			return nil
		}
	}
	return x.body[off : off+n : off+n]
}

// check verifies the checksum of block b.
func (x *Index) check(b uint64) bool {
	lo, hi := b*blockSize, min((b+1)*blockSize, uint64(len(x.body)))
	if b == 0 {
		lo = headerSize
	}
	if checksum(x.body[lo:hi]) != binary.LittleEndian.Uint32(x.sums[4*b:]) {
		return false
	}
	x.sound[b>>6].Or(1 << (b & 63))
	return true
}

// recordAt returns record i of a section with records of n bytes; nil if it is damaged or out of
// range.
func (x *Index) recordAt(id sectionID, i, n uint64) []byte {
	s := &x.head.sections[id]
	if i >= s.size || i*n+n > s.size { // the size is far too small for an overflow
		return nil
	}
	return x.bytesAt(s.off+i*n, n)
}

// rest returns up to n bytes of a section at off; nil if they are damaged or out of range.
func (x *Index) rest(id sectionID, off, n uint64) []byte {
	s := &x.head.sections[id]
	if off >= s.size {
		return nil
	}
	return x.bytesAt(s.off+off, min(n, s.size-off))
}

func damaged(what string) error { return fmt.Errorf("%s: %w", what, ErrDamaged) }

type unitRecord struct {
	data, size           uint64 // offset and size of its data, in bytes
	nameRefs, nameCount  uint64
	fileRefs, filesCount uint64
}

func (x *Index) unit(i uint32) (u unitRecord, err error) {
	b := x.recordAt(secUnits, uint64(i), unitRecordSize)
	if b == nil {
		return u, damaged("units")
	}
	le := binary.LittleEndian
	u = unitRecord{
		uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])),
		uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:])),
		uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[20:])),
	}
	if size := x.head.sections[secUnitData].size; u.data > size || u.size > size-u.data {
		return u, damaged("units")
	}
	return u, nil
}

// A Frame is a call at an address. Name and File are 1 plus the numbers for [Index.Name] and
// [Index.File], or 0 if unknown.
type Frame struct {
	Name, File   uint32
	Line, Column uint32
	Inlined      bool // the call is inlined into the next frame
}

// Lookup appends the frames at addr to dst, innermost first. It appends nothing if the index does
// not cover addr. An error wraps ErrDamaged.
func (x *Index) Lookup(dst []Frame, addr uint64) ([]Frame, error) {
	span, found, err := x.search(secSpanDir, addr)
	if !found || err != nil || span.value == noUnit {
		return dst, err
	}
	u, err := x.unit(span.value)
	if err != nil {
		return dst, err
	}
	e, found, err := x.search(secRowDir, addr)
	if err != nil {
		return dst, err
	}
	at := uint64(e.value) - u.data
	if !found || at >= u.size { // also if the block is before the unit
		return dst, damaged("row directory")
	}
	block := x.bytesAt(x.head.sections[secUnitData].off+u.data+at, min(rowsInBlock*maxRowBytes, u.size-at))
	r, ok := findRow(block, at, addr-e.addr)
	if !ok {
		return dst, damaged("rows")
	}
	return x.frames(dst, &u, r)
}

func (x *Index) frames(dst []Frame, u *unitRecord, r row) ([]Frame, error) {
	start := len(dst)
	file, line, column := r.file, r.line, r.column
	if r.call == 0 {
		if file == 0 {
			return dst, nil
		}
		f, err := x.fileOf(u, file)
		return append(dst, Frame{File: f, Line: uint32(line), Column: uint32(column)}), err
	}
	calls := x.head.sections[secUnitData].off + u.data
	for at := r.call; ; {
		if at == 0 || at > u.size || len(dst)-start == maxFrames {
			return dst[:start], damaged("call")
		}
		v := varints{b: x.bytesAt(calls+at-1, min(maxCallBytes, u.size-(at-1)))}
		name, usual, back := v.unsigned(), v.unsigned(), v.unsigned()
		if len(dst) == start && r.usual {
			file = usual
		}
		f := Frame{Line: uint32(line), Column: uint32(column), Inlined: back > 0}
		var err error
		if f.Name, err = x.reference(secNameRefs, u.nameRefs, u.nameCount, name); err != nil {
			return dst[:start], err
		}
		if f.File, err = x.fileOf(u, file); err != nil {
			return dst[:start], err
		}
		dst = append(dst, f)
		if back == 0 && !v.bad {
			return dst, nil
		}
		file, line, column = v.unsigned(), v.unsigned(), v.unsigned()
		if v.bad || back >= at {
			return dst[:start], damaged("call")
		}
		at -= back
	}
}

func (x *Index) fileOf(u *unitRecord, n uint64) (uint32, error) {
	return x.reference(secFileRefs, u.fileRefs, u.filesCount, n)
}

// reference returns 1 plus the number at position n of a unit's list of names or files, or 0 if n
// is 0. Positions count from 1. The list's section is id, its first record has the index first, and
// its length is count.
func (x *Index) reference(id sectionID, first, count, n uint64) (uint32, error) {
	if n == 0 {
		return 0, nil
	}
	if n > count {
		return 0, damaged("reference")
	}
	b := x.recordAt(id, first+n-1, 4)
	if b == nil || binary.LittleEndian.Uint32(b) == 1<<32-1 {
		return 0, damaged("reference")
	}
	return binary.LittleEndian.Uint32(b) + 1, nil
}

// Name returns linkage name i, and its demangled form, which is empty if the index does not store
// it. Both alias the index.
func (x *Index) Name(i uint32) (linkage, shown []byte, err error) {
	dir := x.recordAt(secNameDir, uint64(i/namesInBlock), 4)
	if dir == nil {
		return nil, nil, damaged("directory of names")
	}
	size := x.head.sections[secNames].size
	at := uint64(binary.LittleEndian.Uint32(dir))
	for skip := i % namesInBlock; ; skip-- {
		v := varints{b: x.rest(secNames, at, maxNameHead)}
		n, more := v.unsigned(), uint64(0)
		if n&hasShown != 0 {
			more = v.unsigned()
		}
		n >>= 1
		if v.bad || n > size || more > size {
			return nil, nil, damaged("names")
		}
		at += uint64(v.at)
		if skip == 0 {
			s := x.rest(secNames, at, n+more)
			if uint64(len(s)) < n+more {
				return nil, nil, damaged("names")
			}
			return s[:n], s[n:], nil
		}
		at += n + more
	}
}

// File returns path i. Its first comp bytes are the compilation directory, and dir bytes precede
// the file's name. path aliases the index.
func (x *Index) File(i uint32) (path []byte, comp, dir int, err error) {
	first, last := x.recordAt(secFileDir, uint64(i), 4), x.recordAt(secFileDir, uint64(i)+1, 4)
	if first == nil || last == nil {
		return nil, 0, 0, damaged("directory of files")
	}
	lo, hi := uint64(binary.LittleEndian.Uint32(first)), uint64(binary.LittleEndian.Uint32(last))
	if lo >= hi || hi > x.head.sections[secFiles].size {
		return nil, 0, 0, damaged("directory of files")
	}
	b := x.rest(secFiles, lo, hi-lo)
	v := varints{b: b}
	c, d := v.unsigned(), v.unsigned()
	path = b[min(v.at, len(b)):]
	if v.bad || c > uint64(len(path)) || d > uint64(len(path)) || len(path) == 0 {
		return nil, 0, 0, damaged("file")
	}
	return path, int(c), int(d), nil
}

// Names returns an upper bound for the number of names. Every number for [Index.Name] is smaller.
func (x *Index) Names() int {
	h := &x.head.sections // a name has at least one byte
	return int(min(h[secNameDir].size/4*namesInBlock, h[secNames].size))
}

// Files returns the number of paths.
func (x *Index) Files() int { return max(0, int(x.head.sections[secFileDir].size/4)-1) }

// Symbol returns the last symbol at or before addr, even if it ends before addr. found is false if
// there is no such symbol.
func (x *Index) Symbol(addr uint64) (s Symbol, found bool, err error) {
	e, found, err := x.search(secSymbolDir, addr)
	if !found || err != nil {
		return s, false, err
	}
	v := varints{b: x.rest(secSymbols, uint64(e.value), symsInBlock*maxSymBytes)}
	s = Symbol{Addr: e.addr, Size: v.unsigned(), Name: uint32(v.signed())}
	for range symsInBlock - 1 {
		if v.at >= len(v.b) { // end of the last block
			break
		}
		next := Symbol{Addr: s.Addr + s.Size + uint64(v.signed())}
		if next.Addr > addr {
			break
		}
		next.Size, next.Name = v.unsigned(), s.Name+uint32(v.signed())
		s = next
	}
	if v.bad {
		return Symbol{}, false, damaged("symbols")
	}
	return s, true, nil
}

// Check verifies the checksums of all blocks.
func (x *Index) Check() error {
	for b := range blocks(uint64(len(x.body))) {
		if !x.check(b) {
			return fmt.Errorf("block %d: %w", b, ErrDamaged)
		}
	}
	return nil
}

// Close unmaps the index. Slices from the index must not be used afterwards.
func (x *Index) Close() error {
	data, mapped := x.data, x.mapped
	*x = Index{}
	if mapped {
		return unmap(data)
	}
	return nil
}

// Size returns the size of the index in bytes.
func (x *Index) Size() int64 { return int64(len(x.data)) }
