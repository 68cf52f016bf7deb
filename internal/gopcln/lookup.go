package gopcln

import "bytes"

// A Frame is a function at an address. Name aliases the file, and is valid until the file is
// closed.
type Frame struct {
	Name    []byte
	File    string // path recorded by the compiler; empty if the table has none
	Line    uint32 // from 1; 0 if the table has none
	Start   uint64 // start of the physical function, also for inlined calls
	Inlined bool
}

// A function is an entry of the table.
type function struct {
	start, end uint64
	name       uint32 // offset in names
	unit       uint32 // index in units of the first file of its compilation unit
	file, line uint32 // offsets in values
	inlining   uint32 // offset in values; 0: no inlined calls
	hasTree    bool
	tree       uint64 // offset of its tree; before Go 1.18 the address of its tree
}

// Lookup appends the frames at addr to dst, innermost inlined call first. It returns dst unchanged
// in padding, and outside of all functions.
func (t *Table) Lookup(dst []Frame, addr uint64) []Frame {
	fn, ok := t.find(addr)
	if !ok {
		return dst
	}
	line, ok := t.valueAt(fn, fn.line, addr)
	if !ok && (fn.line != 0 || isMark(t.name(fn.name))) {
		return dst // in padding, or outside of all functions
	}
	begin := len(dst)
	for at := addr; ; {
		index := int32(-1)
		if t.layout.size != 0 && fn.hasTree && fn.inlining != 0 {
			if v, ok := t.valueAt(fn, fn.inlining, at); ok {
				index = v
			}
		}
		frame := Frame{Start: fn.start, File: t.fileAt(fn, at)}
		if line > 0 && frame.File != "" {
			frame.Line = uint32(line)
		}
		name := fn.name
		parent := uint64(0)
		if frame.Inlined = index >= 0 && len(dst)-begin < maxFrames-1; frame.Inlined {
			inlined, p, ok := t.call(fn, index)
			if !ok || p >= fn.end-fn.start {
				frame.Inlined = false
			} else {
				name, parent = inlined, p
			}
		}
		frame.Name = t.name(name)
		dst = append(dst, frame)
		if !frame.Inlined {
			return dst
		}
		at = fn.start + parent
		line, _ = t.valueAt(fn, fn.line, at)
	}
}

// isMark reports whether the linker made the function called name only to mark a position in the
// text, such as go:textfipsstart.
func isMark(name []byte) bool {
	return bytes.HasPrefix(name, []byte("go:")) || string(name) == "go.buildid"
}

func (t *Table) find(addr uint64) (fn function, ok bool) {
	lo, hi := uint64(0), t.functions // the first entry above addr is in [lo, hi]
	for lo < hi {
		mid := (lo + hi) / 2
		entry, ok := t.entry(mid)
		if !ok {
			return fn, false
		}
		if entry <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return fn, false
	}
	fn, ok = t.function(lo - 1)
	return fn, ok && addr >= fn.start && addr < fn.end
}

func (t *Table) function(i uint64) (fn function, ok bool) {
	var ok1, ok2 bool
	if fn.start, ok1 = t.entry(i); !ok1 {
		return fn, false
	}
	if fn.end, ok2 = t.entry(i + 1); !ok2 || fn.end <= fn.start {
		return fn, false
	}
	off, ok := t.indexAt(2*i + 1)
	if !ok || off > uint64(len(t.funcs)) {
		return fn, false
	}
	b := t.funcs[off:]
	at := t.ptr // offset after the address
	if t.version >= go118 {
		at = 4
	}
	size := at + 32
	switch t.version {
	case go12:
		size = at + 28
	case go120:
		size = at + 40
	case go118, go116:
		size = at + 36
	}
	if size > uint64(len(b)) {
		return fn, false
	}
	fn.name = t.order.Uint32(b[at:])
	fn.file, fn.line = t.order.Uint32(b[at+16:]), t.order.Uint32(b[at+20:])
	if t.version < go116 {
		return fn, true
	}
	values := uint64(t.order.Uint32(b[at+24:]))
	fn.unit = t.order.Uint32(b[at+28:])
	data := uint64(b[size-1])
	const inlining, tree = 2, 3 // PCDATA_InlTreeIndex, FUNCDATA_InlTree
	if values <= inlining || data <= tree {
		return fn, true
	}
	fn.inlining, _ = t.u32(b, size+4*inlining)
	after := size + 4*values // a number of 32 bits times 4: no overflow
	if t.version >= go118 {
		v, ok := t.u32(b, after+4*tree)
		fn.hasTree, fn.tree = ok && v != ^uint32(0), uint64(v)
		return fn, true
	}
	// Pointers follow, aligned to their size.
	after = (off+after+t.ptr-1)/t.ptr*t.ptr - off
	fn.tree, ok = t.word(b, after+tree*t.ptr)
	fn.hasTree = ok && fn.tree != 0
	return fn, true
}

// call decodes entry i in fn's tree of inlined calls. name is the offset of the inlined function's
// name in t.names. parent is the position of the call, in bytes from the start of fn.
func (t *Table) call(fn function, i int32) (name uint32, parent uint64, ok bool) {
	b := t.f.Loaded(t.trees + fn.tree)
	off := uint64(i) * t.layout.size
	if off > uint64(len(b)) {
		return 0, 0, false
	}
	b = b[off:]
	name, ok1 := t.u32(b, t.layout.name)
	place, ok2 := t.u32(b, t.layout.parentPC)
	return name, uint64(place), ok1 && ok2
}

// eachValue decodes the table at off in t.values. It calls visit with each value and the end of the
// address range that has this value. It stops if visit returns false, or at the end of fn.
func (t *Table) eachValue(fn function, off uint32, visit func(end uint64, value int32) bool) {
	if uint64(off) >= uint64(len(t.values)) {
		return
	}
	b := t.values[off:]
	at, value := fn.start, int32(-1)
	for n := 0; n < maxPCSteps; n++ {
		delta, size := uvarint(b)
		if size == 0 || delta == 0 && n > 0 {
			return
		}
		b = b[size:]
		value += int32(delta>>1) ^ -int32(delta&1)
		length, size := uvarint(b)
		if size == 0 {
			return
		}
		b = b[size:]
		at += uint64(length) * t.quantum
		if !visit(at, value) || at >= fn.end {
			return
		}
	}
}

func (t *Table) valueAt(fn function, off uint32, addr uint64) (value int32, ok bool) {
	if off == 0 {
		return 0, false
	}
	t.eachValue(fn, off, func(end uint64, v int32) bool {
		if addr < end {
			value, ok = v, true
			return false
		}
		return true
	})
	return value, ok
}

// uvarint decodes a number of at most 32 bits; size is 0 if there is none.
func uvarint(b []byte) (v uint32, size int) {
	for shift := 0; size < len(b) && shift < 35; shift += 7 {
		c := b[size]
		size++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, size
		}
	}
	return 0, 0
}

func (t *Table) fileAt(fn function, addr uint64) string {
	number, ok := t.valueAt(fn, fn.file, addr)
	if !ok || number < 0 {
		return ""
	}
	var off uint32
	if t.version == go12 {
		count, ok := t.u32(t.files, 0)
		if !ok || number == 0 || uint32(number) > count {
			return ""
		}
		if off, ok = t.u32(t.files, 4*uint64(number)); !ok {
			return ""
		}
	} else if off, ok = t.u32(t.units, 4*(uint64(fn.unit)+uint64(number))); !ok || off == ^uint32(0) {
		return ""
	}
	if name, ok := t.fileNames[off]; ok {
		return name
	}
	from := t.files
	if t.version == go12 {
		from = t.funcs // the whole table
	}
	name := string(cString(from, off))
	if len(t.fileNames) < maxFiles {
		t.fileNames[off] = name
	}
	return name
}

func (t *Table) name(off uint32) []byte { return cString(t.names, off) }

// cString returns the bytes at off up to a NUL; nil if there is no NUL within maxNameBytes.
func cString(b []byte, off uint32) []byte {
	if uint64(off) >= uint64(len(b)) {
		return nil
	}
	b = b[off:]
	b = b[:min(len(b), maxNameBytes)]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil
	}
	return b[:end:end]
}
