package debuginfod

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/symfilter/symfilter/buildid"
)

// elfMagic begins every ELF file.
const elfMagic = "\x7fELF"

// sectionsEnd returns the offset of the end of the section headers. h is the header of the ELF
// file; ok is false if h is cut off or invalid. With 65,280 sections or more, the header has 0 as
// their number, and one section is assumed.
func sectionsEnd(h []byte) (end uint64, ok bool) {
	if len(h) < 52 || string(h[:4]) != elfMagic {
		return 0, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if h[5] == 2 {
		order = binary.BigEndian
	}
	var off, each, count uint64
	switch {
	case h[4] == 1:
		off, each, count = uint64(order.Uint32(h[32:])), uint64(order.Uint16(h[46:])), uint64(order.Uint16(h[48:]))
	case h[4] == 2 && len(h) >= 64:
		off, each, count = order.Uint64(h[40:]), uint64(order.Uint16(h[58:])), uint64(order.Uint16(h[60:]))
	default:
		return 0, false
	}
	if off == 0 {
		return 0, true
	}
	end = off + each*max(count, 1)
	return end, end >= off
}

// noteID returns the build ID in a note section, of either byte order.
func noteID(section []byte) (buildid.ID, error) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for rest := section; len(rest) >= 12; {
			name, desc, kind := uint64(order.Uint32(rest)), uint64(order.Uint32(rest[4:])), order.Uint32(rest[8:])
			descAt := 12 + (name+3)&^3
			end := descAt + desc
			if end > uint64(len(rest)) {
				break
			}
			if kind == 3 && bytes.Equal(rest[12:12+name], []byte("GNU\x00")) {
				return buildid.FromBytes(rest[descAt:end])
			}
			rest = rest[min(uint64(len(rest)), (end+3)&^3):]
		}
	}
	return buildid.ID{}, errors.New("the file has no build ID")
}
