package symindex

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	// ErrDamaged reports an index whose checksums do not match, or whose records are invalid.
	ErrDamaged = errors.New("the index is damaged")

	// ErrStale reports an index of another file, or from another version.
	ErrStale = errors.New("the index is for another file, or from another version of symfilter")
)

// A Source identifies the file from which an index was made.
type Source struct {
	ID      []byte // build ID, at most 64 bytes
	Size    int64  // bytes
	ModTime int64  // nanoseconds since 1970
}

type sectionID int

const (
	secUnitData sectionID = iota
	secUnits
	secNameRefs
	secFileRefs
	secNameDir
	secNames
	secFileDir
	secFiles
	secSymbols
	// each directory has its groups, pages and entries in three sections
	secSpanDir
	secRowDir    = secSpanDir + 3
	secSymbolDir = secRowDir + 3
	numSections  = secSymbolDir + 3
)

// sizes of records in bytes
const (
	groupSize      = 28 // address of 64 bits; first page, pages, first entry, entries, shift
	dirEntrySize   = 8  // distance from the group's address, value
	unitRecordSize = 24
)

// A part is a range of the file.
type part struct{ off, size uint64 }

type header struct {
	source   Source
	sections [numSections]part
	body     uint64 // bytes covered by checksums; the list of checksums follows and ends the file
	sumsCRC  uint32
}

const magic = "symindx\n"

func checksum(b []byte) uint32 { return update(0, b) }

func (h *header) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, uint32(numSections))
	b = le.AppendUint64(b, uint64(h.source.Size))
	b = le.AppendUint64(b, uint64(h.source.ModTime))
	b = le.AppendUint64(b, h.body)
	b = le.AppendUint32(b, h.sumsCRC)
	b = append(b, byte(len(h.source.ID)))
	b = append(b, h.source.ID...)
	b = append(b, make([]byte, 64-len(h.source.ID))...)
	for _, s := range h.sections {
		b = le.AppendUint64(b, s.off)
		b = le.AppendUint64(b, s.size)
	}
	b = append(b, make([]byte, headerSize-4-len(b))...)
	return le.AppendUint32(b, checksum(b))
}

func (h *header) decode(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:8]) != magic {
		return fmt.Errorf("header: %w", ErrDamaged)
	}
	if le.Uint32(b[8:]) != version {
		return fmt.Errorf("version %d: %w", le.Uint32(b[8:]), ErrStale)
	}
	if checksum(b[:headerSize-4]) != le.Uint32(b[headerSize-4:]) || le.Uint32(b[12:]) != uint32(numSections) || b[44] > 64 {
		return fmt.Errorf("header: %w", ErrDamaged)
	}
	h.source.Size, h.source.ModTime = int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:]))
	h.body, h.sumsCRC = le.Uint64(b[32:]), le.Uint32(b[40:])
	h.source.ID = append([]byte(nil), b[45:45+b[44]]...)
	for i := range h.sections {
		at := b[109+16*i:]
		h.sections[i] = part{le.Uint64(at), le.Uint64(at[8:])}
	}
	return nil
}

func blocks(body uint64) uint64 { return (body + blockSize - 1) / blockSize }

// hasShown is the lowest bit of the number that begins a name. The higher bits are the length of
// the linkage name. If hasShown is set, the name also has a demangled form, whose length follows.
const hasShown = 1

// The first byte of a row: values and masks.
const (
	rowCall    = 0x03 // mask: the call
	sameCall   = 0x00
	noCall     = 0x01
	newCall    = 0x02 // signed distance from the last call, or from the block's start, follows
	blockEnd   = 0x03 // not a row: the end of a block with less than rowsInBlock rows
	rowFile    = 0x0c // mask: the file
	sameFile   = 0x00
	callsFile  = 0x04 // the usual file of the call
	newFile    = 0x08
	noFile     = 0x0c // no file and line are known
	sameColumn = 0x10
	nextLine   = 0x20 // the previous row's line + 1; no distance follows
	// The upper two bits are the distance in bytes from the previous row's address, minus 1. If
	// both bits are set, the distance follows as a number.
	shortShift  = 6
	longAdvance = 3
)
