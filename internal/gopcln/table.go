package gopcln

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"

	"github.com/symfilter/symfilter/internal/object"
)

// ErrNone is returned for a file without a readable table.
var ErrNone = errors.New("no .gopclntab")

// A version is a layout of the table; later layouts have greater numbers.
type version int

const (
	go12  version = iota + 1 // Go 1.2 to 1.15
	go116                    // 1.16 and 1.17: offsets of all parts in the header
	go118                    // 1.18 and 1.19: functions by their offset in the text
	go120                    // 1.20 and later: the line on which a function starts
)

// A Table is the table of one file, valid until the file is closed. One goroutine at a time may use
// it.
type Table struct {
	f       *object.File
	order   binary.ByteOrder
	ptr     uint64 // bytes per address
	quantum uint64 // bytes of the smallest instruction
	version version

	functions uint64    // number of functions; index also has the end of the last
	index     []byte    // index of functions, sorted by address
	funcs     []byte    // base of the offsets in index
	offsets   [5]uint64 // in the table: names, units, files, values and funcs; since Go 1.16
	names     []byte
	units     []byte // offsets of file names in files; nil in go12
	files     []byte
	values    []byte // tables of values by program counter
	text      uint64 // added to the addresses in index

	trees  uint64 // base address of the offsets of trees
	layout treeLayout

	copied    int64 // bytes of a copy on the heap
	fileNames map[uint32]string
}

// A treeLayout has the sizes and offsets of fields in a tree's entry, in bytes.
type treeLayout struct {
	size, name, parentPC uint64
}

// New finds the table of f, or returns [ErrNone]. Without a section with the table's name, it may
// read much of the file.
func New(f *object.File) (*Table, error) {
	t := &Table{f: f, order: f.Order, ptr: 4}
	if f.Class == elf.ELFCLASS64 {
		t.ptr = 8
	}
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		s, ok := f.Section(name)
		if !ok {
			continue
		}
		if data, err := f.Data(name); err == nil && t.open(data, s.Addr) {
			return t, nil
		}
		return nil, ErrNone
	}
	if len(f.Sections()) > 1 && !t.mayBeGo() {
		return nil, ErrNone
	}
	tried := 0
	for i, p := range f.Segments() {
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := f.SegmentData(i)
		for at := t.findMagic(data, 0); at >= 0 && tried < maxCandidates; at = t.findMagic(data, at+8) {
			tried++
			if addr := p.Addr + uint64(at); t.open(data[at:], addr) {
				return t, nil
			}
		}
	}
	return nil, ErrNone
}

// mayBeGo reports whether a file may be a Go program, by its sections. Linkers other than Go's put
// the table into a section with other data.
func (t *Table) mayBeGo() bool {
	for _, name := range []string{".go.buildinfo", ".note.go.buildid"} {
		if _, ok := t.f.Section(name); ok {
			return true
		}
	}
	return false
}

const (
	magicOf12  = 0xfffffffb
	magicOf116 = 0xfffffffa
	magicOf118 = 0xfffffff0
	magicOf120 = 0xfffffff1
)

// findMagic returns the offset in data of the first possible header, not below from; -1 if there is
// none. Headers begin at multiples of eight.
func (t *Table) findMagic(data []byte, from int) int {
	// All magic numbers have three 0xff bytes in a row. In little-endian files, two zero bytes of
	// padding follow.
	pattern, first := []byte("\xff\xff\xff\x00\x00"), 1
	if t.order == binary.BigEndian {
		pattern, first = []byte("\xff\xff\xff"), 0
	}
	for from < len(data) {
		i := bytes.Index(data[from:], pattern)
		if i < 0 {
			return -1
		}
		at := from + i - first
		if at >= 0 && at%8 == 0 && len(data)-at >= 8 && t.header(data[at:]) != 0 {
			return at
		}
		from += i + 1
	}
	return -1
}

// header returns the version of the table that begins with b; 0 if b does not begin like a table.
func (t *Table) header(b []byte) version {
	if len(b) < 8 || b[4] != 0 || b[5] != 0 || uint64(b[7]) != t.ptr {
		return 0
	}
	switch b[6] {
	case 1, 2, 4:
	default:
		return 0
	}
	switch t.order.Uint32(b) {
	case magicOf12:
		return go12
	case magicOf116:
		return go116
	case magicOf118:
		return go118
	case magicOf120:
		return go120
	}
	return 0
}

// open parses data, loaded at addr, as the table. It returns false if data is not a table.
func (t *Table) open(data []byte, addr uint64) bool {
	t.version = t.header(data)
	if t.version == 0 {
		return false
	}
	t.quantum = uint64(data[6])
	if t.version <= go116 && t.f.Type == elf.ET_DYN {
		data = t.relocated(data, addr)
	}
	if !t.parts(data) {
		return false
	}
	t.text, t.trees, t.layout = 0, 0, treeLayout{}
	m, found := t.findModule(addr)
	if t.version >= go118 {
		if !t.findText(m.text, found, data) {
			return false
		}
	} else if first, ok := t.entry(0); !ok || !t.f.ExecCovers(first) {
		return false
	}
	t.fileNames = make(map[uint32]string)
	if t.version >= go116 {
		t.findTrees(m, found)
	}
	return true
}

func (t *Table) word(b []byte, off uint64) (uint64, bool) {
	if off > uint64(len(b)) || uint64(len(b))-off < t.ptr {
		return 0, false
	}
	if t.ptr == 4 {
		return uint64(t.order.Uint32(b[off:])), true
	}
	return t.order.Uint64(b[off:]), true
}

func (t *Table) u32(b []byte, off uint64) (uint32, bool) {
	if off > uint64(len(b)) || uint64(len(b))-off < 4 {
		return 0, false
	}
	return t.order.Uint32(b[off:]), true
}

// parts slices the table by its header. It returns false if the header is wrong.
func (t *Table) parts(data []byte) bool {
	if t.version == go12 {
		n, ok := t.word(data, 8)
		if !ok || n == 0 || n > uint64(len(data))/(2*t.ptr) {
			return false
		}
		t.functions, t.index = n, data[8+t.ptr:]
		end := n*2*t.ptr + t.ptr // two words each, and the end of the last
		at, ok := t.u32(t.index, end)
		if !ok || uint64(at) >= uint64(len(data)) {
			return false
		}
		t.index = t.index[:end]
		t.funcs, t.names, t.units, t.files, t.values = data, data, nil, data[at:], data
		return true
	}
	offsets := uint64(2) // words after the first eight bytes: counts of functions and files
	if t.version >= go118 {
		offsets++ // the start of the text
	}
	n, ok := t.word(data, 8)
	if !ok || n == 0 || n > uint64(len(data)) {
		return false
	}
	t.functions = n
	for i, part := range []*[]byte{&t.names, &t.units, &t.files, &t.values, &t.funcs} {
		off, ok := t.word(data, 8+(offsets+uint64(i))*t.ptr)
		if !ok || off >= uint64(len(data)) {
			return false
		}
		*part, t.offsets[i] = data[off:], off
	}
	size := n*2*t.indexWord() + t.indexWord() // n is at most the size of data: no overflow
	if size > uint64(len(t.funcs)) {
		return false
	}
	t.index = t.funcs[:size]
	return true
}

// indexWord returns the size in bytes of a number in the index.
func (t *Table) indexWord() uint64 {
	if t.version >= go118 {
		return 4
	}
	return t.ptr
}

// indexAt returns number i of the index: an address or an offset in the text if i is even, a
// function's offset if i is odd.
func (t *Table) indexAt(i uint64) (uint64, bool) {
	if t.version >= go118 {
		v, ok := t.u32(t.index, i*4)
		return uint64(v), ok
	}
	return t.word(t.index, i*t.ptr)
}

// entry returns the address of function i. If i is t.functions, it returns the end of the last
// function.
func (t *Table) entry(i uint64) (uint64, bool) {
	v, ok := t.indexAt(2 * i)
	return t.text + v, ok
}

// relocated returns data with relocations applied, or data itself if a copy is not needed or not
// possible. Position-independent files up to Go 1.17 have relocations.
func (t *Table) relocated(data []byte, addr uint64) []byte {
	copied := false
	t.f.RelativeRelocations(func(at, value uint64) bool {
		if at < addr || at-addr > uint64(len(data)) || uint64(len(data))-(at-addr) < t.ptr {
			return true
		}
		if !copied {
			if len(data) > maxTable {
				return false
			}
			room, onHeap, err := t.f.Alloc(len(data))
			if err != nil {
				return false
			}
			copy(room, data)
			data, copied = room, true
			if onHeap {
				t.copied = int64(len(data))
			}
		}
		if b := data[at-addr:]; t.ptr == 8 {
			t.order.PutUint64(b, value)
		} else {
			t.order.PutUint32(b, uint32(value))
		}
		return true
	})
	return data
}

// Footprint estimates the bytes of heap that the table takes, without its file.
func (t *Table) Footprint() int64 {
	n := int64(512)
	for _, name := range t.fileNames {
		n += int64(len(name)) + 64
	}
	return n + t.copied
}
