package dwarf

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// LLVM chooses among the ranges of all functions of a unit and all calls in them, in the order of
// their entries. Usually this is the same as choosing first a function and then a call in it. It
// differs in strict DWARF 2, where a function has only one range. There GCC describes the cold part
// as another function, but calls inlined into the cold part are below the entry of the first
// function.

// coldPartPrefix begins the names of functions that are the cold part of another function.
const coldPartPrefix = "__second_sect_of_"

// isColdPart reports whether a function's entry describes the cold part of another function.
func (u *unit) isColdPart(decl *abbrev, e *entryData) bool {
	if u.enc.version != 2 || decl.children || !e.name.ok() {
		return false
	}
	name := u.stringOf(e.name, secInfo)
	if !name.ok {
		return false
	}
	b := u.d.sec.get(name.sec)
	return name.off < uint64(len(b)) && bytes.HasPrefix(b[name.off:], []byte(coldPartPrefix))
}

// A reach assigns a stretch of addresses to a call. The stretch ends at hi, or where the next reach
// starts if that is lower.
type reach struct {
	lo, hi   uint64
	fn, call uint32 // index in functionTable.list, and index in that function's calls
}

// callAmong returns the call that covers addr, which must be in a cold part. Its results are the
// same as callAt's, but it searches the calls of all functions of the unit.
func (u *unit) callAmong(addr uint64) (int, []call) {
	t := &u.funcs
	u.gather()
	all := t.rare.all
	i := above(all, addr) - 1
	if i < 0 || addr >= all[i].hi {
		return -1, nil
	}
	r := &all[i]
	f := &t.list[r.fn]
	return int(r.call), t.calls[f.calls : f.calls+f.numCalls]
}

// gather fills rareCalls.all, once, with the reaches that touch a cold part. Other ranges
// cannot change LLVM's choice in a cold part.
func (u *unit) gather() {
	t := &u.funcs
	rare := t.rarely()
	if rare.gathered {
		return
	}
	rare.gathered = true
	u.scan()
	u.scanAgain()
	cold := t.coldParts()
	byEntry := make([]int, len(t.list))
	for i := range byEntry {
		byEntry[i] = i
	}
	slices.SortFunc(byEntry, func(a, b int) int { return cmp.Compare(t.list[a].entry, t.list[b].entry) })
	read := u.d.read
	var (
		all   reachMap
		given int
		near  []span // the function's own ranges that touch cold
	)
	for _, i := range byEntry {
		f := &t.list[i]
		before, calls := *f, len(t.calls)
		spans := u.readCalls(f)
		near = near[:0]
		for _, s := range spans {
			if cold.touches(s) {
				near = append(near, s)
			}
		}
		switch {
		case before.parsed || len(near) == 0: // the calls are known, or too far away to matter
			*f, t.calls = before, t.calls[:calls]
		default:
			f.parsed = true
			rare.bases = append(rare.bases, f.calls)
			u.keepSpans(f, spans)
		}
		// Each range adds at most two reaches of 24 bytes: at most 24 MiB in all.
		if given += len(near); given > maxRanges {
			u.damaged("more than %d ranges of inlined calls", maxRanges)
			break
		}
		if !u.d.spend(1 + giveSteps*len(near)) {
			break
		}
		for _, s := range near {
			if s.id < f.numCalls { // fewer calls are known if an earlier lookup ran out of steps
				all.give(reach{s.lo, s.hi, uint32(i), s.id})
			}
		}
	}
	rare.all = slices.Concat(all...)
	u.d.read = read + int64(len(u.data))
}

func (t *functionTable) coldParts() functionSet {
	var cold functionSet
	for _, set := range t.sets() {
		for _, s := range set.spans {
			if t.list[s.id].coldPart {
				cold.spans = append(cold.spans, s)
			}
		}
	}
	cold.sort()
	return cold
}

// touches reports whether a range overlaps a range of s, or ends where a range of s begins. s must
// be sorted.
func (s *functionSet) touches(r span) bool {
	i := sort.Search(len(s.clusters), func(i int) bool { return s.clusters[i].hi > r.lo })
	return i < len(s.clusters) && s.clusters[i].lo <= r.hi
}

// giveSteps is the cost of one reachMap.give in steps.
const giveSteps = 32

// A reachMap reproduces the map from addresses to calls that LLVM builds. Its reaches are in the
// order of their starts. They are in pieces so that an insertion moves few of them. No piece is
// empty.
type reachMap [][]reach

// maxPiece bounds the reaches of a piece. A full piece is split.
const maxPiece = 256

// find returns the position of the last reach that starts at addr or below: a piece, and an index
// in the piece. The index is -1 if there is no such reach.
func (m reachMap) find(addr uint64) (piece, i int) {
	piece = sort.Search(len(m), func(i int) bool { return m[i][0].lo > addr }) - 1
	if piece < 0 {
		return 0, -1
	}
	return piece, above(m[piece], addr) - 1
}

// give adds r as LLVM adds a range to its map. If another reach covers r's start, that reach is cut
// there, and its part after r's end becomes a separate reach.
func (m *reachMap) give(r reach) {
	if p, i := m.find(r.lo); i >= 0 && r.lo < (*m)[p][i].hi {
		around := &(*m)[p][i]
		rest := *around
		if r.lo > around.lo {
			around.hi = r.lo
		}
		if r.hi < rest.hi {
			rest.lo = r.hi
			m.put(rest)
		}
	}
	m.put(r)
}

// put adds a reach. It replaces a reach with the same start.
func (m *reachMap) put(r reach) {
	p, i := m.find(r.lo)
	switch {
	case len(*m) == 0:
		*m = reachMap{{r}}
		return
	case i >= 0 && (*m)[p][i].lo == r.lo:
		(*m)[p][i] = r
		return
	}
	s := slices.Insert((*m)[p], i+1, r)
	if (*m)[p] = s; len(s) >= maxPiece {
		(*m)[p] = s[:maxPiece/2]
		*m = slices.Insert(*m, p+1, slices.Clone(s[maxPiece/2:]))
	}
}

// above returns the index of the first reach that starts above addr.
func above(all []reach, addr uint64) int {
	return sort.Search(len(all), func(i int) bool { return all[i].lo > addr })
}
