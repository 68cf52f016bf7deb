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

	spanDir, spans      []byte
	spanCount, spanUnit uint64
	spanEnd             uint64
	units               []byte
	unitCount           uint32
	rowDir              []byte
	nameRefs, fileRefs  []byte
	nameDir             []byte
	nameCount           uint32
	nameStart           uint64 // offset; 0 before the first name
	files, fileDir      []byte
	fileCount           uint32
	symbols             []byte
	lastSymbol          uint64
	err                 error
}

// NewWriter returns a Writer to the empty file f. It writes in order, but the header last.
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

// AddUnit writes a unit, and returns its number for spans. The unit's positions, from 1, are in
// names and files. These lists hold the numbers, from 0, of AddName's names and AddFile's paths.
func (w *Writer) AddUnit(u *Unit, names, files []uint32) uint32 {
	le := binary.LittleEndian
	if w.nameStart != 0 {
		w.fail("a unit after the names")
	}
	if uint64(len(u.rows)) > math.MaxUint32 || uint64(len(u.calls)) > math.MaxUint32 {
		w.fail("a unit of %d bytes", len(u.rows)+len(u.calls))
	}
	w.units = le.AppendUint64(w.units, w.off-headerSize)
	for _, n := range []int{len(u.rows), len(u.calls), len(w.rowDir) / dirEntrySize, len(u.dir),
		len(w.nameRefs) / 4, len(names), len(w.fileRefs) / 4, len(files)} {
		w.units = le.AppendUint32(w.units, uint32(n))
	}
	w.write(u.rows)
	w.write(u.calls)
	for _, e := range u.dir {
		w.rowDir = appendDir(w.rowDir, e)
	}
	for _, n := range names {
		w.nameRefs = le.AppendUint32(w.nameRefs, n)
	}
	for _, n := range files {
		w.fileRefs = le.AppendUint32(w.fileRefs, n)
	}
	w.unitCount++
	return w.unitCount - 1
}

func appendDir(b []byte, e dirEntry) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, e.addr), e.off)
}

// AddSpan assigns the addresses [lo,hi) to a unit. Spans must be in ascending order, without
// overlaps.
func (w *Writer) AddSpan(lo, hi uint64, unit uint32) {
	if lo >= hi || lo < w.spanEnd {
		w.fail("span [%#x,%#x) is empty or begins before %#x", lo, hi, w.spanEnd)
		return
	}
	if w.spanCount%spansInBlock == 0 {
		w.spanDir = appendDir(w.spanDir, dirEntry{lo, uint32(len(w.spans))})
		w.spanEnd, w.spanUnit = lo, 0
	}
	w.spans = binary.AppendUvarint(w.spans, lo-w.spanEnd)
	w.spans = binary.AppendUvarint(w.spans, hi-lo)
	w.spans = binary.AppendVarint(w.spans, int64(unit)-int64(w.spanUnit))
	w.spanCount++
	w.spanEnd, w.spanUnit = hi, uint64(unit)
}

// AddName adds the next name. shown is its demangled form, or "" to make the reader demangle the
// name. The first name has number 0.
func (w *Writer) AddName(linkage, shown string) {
	if w.nameStart == 0 {
		w.nameStart = w.off
	}
	w.nameDir = binary.LittleEndian.AppendUint32(w.nameDir, uint32(w.off-w.nameStart))
	var length [binary.MaxVarintLen64]byte
	w.write(length[:binary.PutUvarint(length[:], uint64(len(linkage)))])
	w.write([]byte(linkage))
	w.write([]byte(shown))
	w.nameCount++
}

// AddFile adds the next path. Its first comp bytes are the compilation directory, and dir bytes
// precede the file's name. The first path has number 0.
func (w *Writer) AddFile(path string, comp, dir int) {
	w.fileDir = binary.LittleEndian.AppendUint32(w.fileDir, uint32(len(w.files)))
	w.files = binary.AppendUvarint(w.files, uint64(comp))
	w.files = binary.AppendUvarint(w.files, uint64(dir))
	w.files = append(w.files, path...)
	w.fileCount++
}

// AddSymbol adds a symbol. Symbols must be in ascending order of addresses.
func (w *Writer) AddSymbol(s Symbol) {
	if len(w.symbols) > 0 && s.Addr <= w.lastSymbol {
		w.fail("symbol at %#x after %#x", s.Addr, w.lastSymbol)
		return
	}
	w.lastSymbol = s.Addr
	le := binary.LittleEndian
	w.symbols = le.AppendUint64(w.symbols, s.Addr)
	w.symbols = le.AppendUint64(w.symbols, s.Size)
	w.symbols = le.AppendUint32(w.symbols, s.Name)
}

// Finish writes the remaining parts and returns the first error. It does not close the file.
func (w *Writer) Finish() error {
	if w.nameStart == 0 {
		w.nameStart = w.off
	}
	unitEnd, nameEnd := w.nameStart, w.off
	w.head.sections[secUnitData] = part{headerSize, unitEnd - headerSize}
	w.head.sections[secNames] = part{unitEnd, nameEnd - unitEnd}
	w.nameDir = binary.LittleEndian.AppendUint32(w.nameDir, uint32(nameEnd-unitEnd))
	w.fileDir = binary.LittleEndian.AppendUint32(w.fileDir, uint32(len(w.files)))
	for _, s := range []struct {
		id sectionID
		b  []byte
	}{
		{secSpanDir, w.spanDir}, {secSpans, w.spans}, {secUnits, w.units}, {secRowDir, w.rowDir}, {secNameRefs, w.nameRefs},
		{secFileRefs, w.fileRefs}, {secNameDir, w.nameDir}, {secFileDir, w.fileDir}, {secFiles, w.files}, {secSymbols, w.symbols},
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
