package symindex

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// A Symbol is an entry of the symbol table. Symbols of an index have different addresses.
type Symbol struct {
	Addr uint64
	Size uint64 // size in bytes; 0 if the symbol table has none
	Name uint32 // number, from 0
}

// A Writer writes an index: first all units, then all names. Other parts may be added at any time.
// Finish returns the first error. A Writer is not safe for concurrent use.
type Writer struct {
	w    *bufio.Writer
	at   io.WriterAt
	head header

	off  uint64 // bytes written
	crc  uint32 // checksum of the current block
	sums []byte

	spans, rows        []dirEntry
	spanEnd            uint64
	units              []byte
	blocks             [][]dirEntry // blocks of each unit that are not in rows yet
	nameRefs, fileRefs []byte
	nameDir            []byte
	nameCount          int
	nameStart          uint64 // offset of the first name; 0 before it is written
	files, fileDir     []byte
	symbols            []byte
	symbolDir          []dirEntry
	symbolCount        int
	lastSymbol         Symbol
	err                error
}

// NewWriter returns a Writer to the empty file f. The Writer writes all parts in order, and then
// the header.
func NewWriter(f *os.File, source Source) *Writer {
	w := &Writer{w: bufio.NewWriterSize(f, 256<<10), at: f, head: header{source: source}}
	if len(source.ID) > 64 {
		w.fail("build ID of %d bytes", len(source.ID))
		return w
	}
	w.write(make([]byte, headerSize))
	return w
}

func (w *Writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("index: "+format, args...)
	}
}

// write appends p to the body.
func (w *Writer) write(p []byte) {
	if w.err != nil {
		return
	}
	if w.off+uint64(len(p)) > maxIndexBytes {
		w.fail("more than %d bytes", int64(maxIndexBytes))
		return
	}
	if _, err := w.w.Write(p); err != nil {
		w.err = err
		return
	}
	for len(p) > 0 {
		n := min(uint64(len(p)), blockSize-w.off%blockSize)
		first := p[:n]
		if w.off < headerSize { // the header has a separate checksum
			first = first[:0]
		}
		w.crc = update(w.crc, first)
		w.off += n
		p = p[n:]
		if w.off%blockSize == 0 {
			w.sum()
		}
	}
}

func (w *Writer) sum() {
	w.sums = binary.LittleEndian.AppendUint32(w.sums, w.crc)
	w.crc = 0
}

// AddUnit writes a unit, and returns the unit's number for AddSpan. The unit must not be used
// afterwards. The lists names and files hold the numbers of the unit's names and paths: the first
// call of AddName or AddFile adds number 0. The unit refers to the elements of these lists by
// position, from 1.
func (w *Writer) AddUnit(u *Unit, names, files []uint32) uint32 {
	le := binary.LittleEndian
	if w.nameStart != 0 {
		w.fail("a unit after the names")
	}
	u.endBlock()
	if uint64(len(u.data)) > math.MaxUint32 {
		w.fail("a unit of %d bytes", len(u.data))
	}
	at := uint32(w.off - headerSize)
	for _, n := range []int{int(at), len(u.data), len(w.nameRefs) / 4, len(names), len(w.fileRefs) / 4, len(files)} {
		w.units = le.AppendUint32(w.units, uint32(n))
	}
	w.write(u.data)
	for i := range u.dir {
		u.dir[i].value += at
	}
	for _, n := range names {
		w.nameRefs = le.AppendUint32(w.nameRefs, n)
	}
	for _, n := range files {
		w.fileRefs = le.AppendUint32(w.fileRefs, n)
	}
	w.blocks = append(w.blocks, u.dir)
	return uint32(len(w.blocks) - 1)
}

// noUnit is the value of a span directory's entry for addresses without a unit.
const noUnit = 1<<32 - 1

// AddSpan assigns the addresses [lo,hi) to a unit that has been added. Spans must be in ascending
// order, without overlaps. Before the unit's first row of each span, [Unit.BeginSpan] must have
// been called, unless the unit's previous span ends at lo. Addresses before that row are not
// covered.
func (w *Writer) AddSpan(lo, hi uint64, unit uint32) {
	if lo >= hi || lo < w.spanEnd || uint64(unit) >= uint64(len(w.blocks)) {
		w.fail("span [%#x,%#x) of unit %d is empty, begins before %#x, or has no unit", lo, hi, unit, w.spanEnd)
		return
	}
	blocks := w.blocks[unit]
	for len(blocks) > 0 && blocks[0].addr < lo {
		blocks = blocks[1:]
	}
	n := 0
	for n < len(blocks) && blocks[n].addr < hi {
		n++
	}
	w.blocks[unit] = blocks[n:]
	if last := len(w.spans) - 1; last < 0 || lo != w.spanEnd || w.spans[last].value != unit {
		if n == 0 {
			return
		}
		w.endSpans(blocks[0].addr)
		w.spans = append(w.spans, dirEntry{blocks[0].addr, unit})
	}
	w.rows = append(w.rows, blocks[:n]...)
	w.spanEnd = hi
}

// endSpans marks the addresses from the end of the last span up to addr as addresses without a
// unit.
func (w *Writer) endSpans(addr uint64) {
	if len(w.spans) > 0 && w.spanEnd < addr {
		w.spans = append(w.spans, dirEntry{w.spanEnd, noUnit})
	}
}

// AddName adds the next name. shown is its demangled form, or "" to make the reader demangle the
// name. The first name has number 0.
func (w *Writer) AddName(linkage, shown string) {
	if w.nameStart == 0 {
		w.nameStart = w.off
	}
	if w.nameCount%namesInBlock == 0 {
		w.nameDir = binary.LittleEndian.AppendUint32(w.nameDir, uint32(w.off-w.nameStart))
	}
	w.nameCount++
	head := binary.AppendUvarint(make([]byte, 0, maxNameHead), uint64(len(linkage))<<1)
	if shown != "" {
		head[0] |= hasShown
		head = binary.AppendUvarint(head, uint64(len(shown)))
	}
	w.write(head)
	w.write([]byte(linkage))
	w.write([]byte(shown))
}

// AddFile adds the next path. Its first comp bytes are the compilation directory, and dir bytes
// precede the file's name. The first path has number 0.
func (w *Writer) AddFile(path string, comp, dir int) {
	w.fileDir = binary.LittleEndian.AppendUint32(w.fileDir, uint32(len(w.files)))
	w.files = binary.AppendUvarint(w.files, uint64(comp))
	w.files = binary.AppendUvarint(w.files, uint64(dir))
	w.files = append(w.files, path...)
}

// AddSymbol adds a symbol. Symbols must be in ascending order of addresses.
func (w *Writer) AddSymbol(s Symbol) {
	last := &w.lastSymbol
	if w.symbolCount > 0 && s.Addr <= last.Addr {
		w.fail("symbol at %#x after %#x", s.Addr, last.Addr)
		return
	}
	if w.symbolCount%symsInBlock == 0 {
		w.symbolDir = append(w.symbolDir, dirEntry{s.Addr, uint32(len(w.symbols))})
		last.Name = 0
	} else {
		w.symbols = binary.AppendVarint(w.symbols, int64(s.Addr-(last.Addr+last.Size)))
	}
	w.symbols = binary.AppendUvarint(w.symbols, s.Size)
	w.symbols = binary.AppendVarint(w.symbols, int64(s.Name)-int64(last.Name))
	w.symbolCount++
	*last = s
}

// Finish writes the remaining parts and returns the first error. It does not close the file.
func (w *Writer) Finish() error {
	if w.nameStart == 0 {
		w.nameStart = w.off
	}
	unitEnd, nameEnd := w.nameStart, w.off
	w.head.sections[secUnitData] = part{headerSize, unitEnd - headerSize}
	w.head.sections[secNames] = part{unitEnd, nameEnd - unitEnd}
	w.fileDir = binary.LittleEndian.AppendUint32(w.fileDir, uint32(len(w.files)))
	if len(w.spans) > 0 {
		w.spans = append(w.spans, dirEntry{w.spanEnd, noUnit})
	}
	spans, rows, symbols := newDirectory(w.spans), newDirectory(w.rows), newDirectory(w.symbolDir)
	for _, s := range []struct {
		id sectionID
		b  []byte
	}{
		{secSpanDir, spans.groups}, {secSpanDir + 1, spans.pages}, {secSpanDir + 2, spans.entries},
		{secUnits, w.units},
		{secRowDir, rows.groups}, {secRowDir + 1, rows.pages}, {secRowDir + 2, rows.entries},
		{secNameRefs, w.nameRefs}, {secFileRefs, w.fileRefs}, {secNameDir, w.nameDir}, {secFileDir, w.fileDir}, {secFiles, w.files},
		{secSymbolDir, symbols.groups}, {secSymbolDir + 1, symbols.pages}, {secSymbolDir + 2, symbols.entries},
		{secSymbols, w.symbols},
	} {
		w.head.sections[s.id] = part{w.off, uint64(len(s.b))}
		w.write(s.b)
	}
	w.head.body = w.off
	if w.off%blockSize != 0 {
		w.sum()
	}
	w.head.sumsCRC = checksum(w.sums)
	if w.err == nil {
		_, w.err = w.w.Write(w.sums)
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err == nil {
		_, w.err = w.at.WriteAt(w.head.encode(), 0)
	}
	err := w.err
	w.err = errors.New("index: written already")
	return err
}
