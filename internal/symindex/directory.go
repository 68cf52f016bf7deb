package symindex

import "encoding/binary"

// A dirEntry is an entry of a directory. Its value applies to the addresses from addr up to the
// addr of the next entry.
type dirEntry struct {
	addr  uint64
	value uint32
}

// A directory is a list of dirEntries, encoded as three sections of the index: its groups, pages
// and entries.
type directory struct{ groups, pages, entries []byte }

// newDirectory returns the directory of entries, which have ascending addresses.
func newDirectory(all []dirEntry) (d directory) {
	le := binary.LittleEndian
	for first := 0; first < len(all); {
		base, end := all[first].addr, first+1
		for end < len(all) && all[end].addr-all[end-1].addr <= maxGap && all[end].addr-base < 1<<32 {
			end++
		}
		group := all[first:end]
		size := group[len(group)-1].addr - base
		shift := uint32(0)
		for size>>shift > uint64(len(group)/pageEntries) {
			shift++
		}
		pages := uint32(size>>shift) + 1
		d.groups = le.AppendUint64(d.groups, base)
		for _, n := range []uint32{uint32(len(d.pages) / 4), pages, uint32(first), uint32(len(group)), shift} {
			d.groups = le.AppendUint32(d.groups, n)
		}
		page := uint32(0)
		for i, e := range group {
			for ; page <= uint32((e.addr-base)>>shift); page++ {
				d.pages = le.AppendUint32(d.pages, uint32(i))
			}
			d.entries = le.AppendUint32(d.entries, uint32(e.addr-base))
			d.entries = le.AppendUint32(d.entries, e.value)
		}
		d.pages = le.AppendUint32(d.pages, uint32(len(group)))
		first = end
	}
	return d
}

// search returns the entry that applies at addr: the last one at or before addr. The first section
// of the directory is id, and the other two follow it. found is false if addr precedes all entries.
func (x *Index) search(id sectionID, addr uint64) (e dirEntry, found bool, err error) {
	le := binary.LittleEndian
	lo, hi := uint64(0), x.head.sections[id].size/groupSize
	var group []byte
	for lo < hi {
		m := (lo + hi) / 2
		b := x.recordAt(id, m, groupSize)
		if b == nil {
			return e, false, damaged("directory")
		}
		if le.Uint64(b) <= addr {
			group, lo = b, m+1
		} else {
			hi = m
		}
	}
	if group == nil {
		return e, false, nil
	}
	base, firstPage, pages := le.Uint64(group), uint64(le.Uint32(group[8:])), uint64(le.Uint32(group[12:]))
	first, at, shift := uint64(le.Uint32(group[16:])), uint64(le.Uint32(group[20:])), le.Uint32(group[24:])
	off := addr - base
	end := at // after the last page, the last entry is the result
	if page := off >> shift; page < pages {
		b := x.rest(id+1, 4*(firstPage+page), 8)
		if len(b) < 8 {
			return e, false, damaged("directory")
		}
		at, end = uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
	}
	for at < end {
		m := (at + end) / 2
		b := x.recordAt(id+2, first+m, dirEntrySize)
		if b == nil {
			return e, false, damaged("directory")
		}
		if uint64(le.Uint32(b)) <= off {
			at = m + 1
		} else {
			end = m
		}
	}
	if at > 0 {
		if b := x.recordAt(id+2, first+at-1, dirEntrySize); b != nil && uint64(le.Uint32(b)) <= off {
			return dirEntry{base + uint64(le.Uint32(b)), le.Uint32(b[4:])}, true, nil
		}
	}
	return e, false, damaged("directory")
}
