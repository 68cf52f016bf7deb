package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// In a file that was not linked, all sections with code begin at address 0, and so do unrelated
// functions. LLVM chooses among the ranges of all functions of a unit and all calls in them, in the
// order of their entries.

// overlaps reports whether addresses belong to several functions.
func (s *sections) overlaps() bool { return len(s.places) > 0 }

// A reach is a stretch of addresses of a call: up to the start of the next reach, or to its own end
// if that is lower.
type reach struct {
	lo, hi   uint64
	fn, call uint32 // in functionTable.list, and among its calls
}

// callAmong is callAt among all functions of a unit.
func (u *unit) callAmong(addr uint64) (int, []call) {
	t := &u.funcs
	if !t.gathered {
		t.gathered = true
		u.gather()
	}
	i := above(t.all, addr) - 1
	if i < 0 || addr >= t.all[i].hi {
		return -1, nil
	}
	r := &t.all[i]
	f := &t.list[r.fn]
	return int(r.call), t.calls[f.calls : f.calls+f.numCalls]
}

// gather fills functionTable.all.
func (u *unit) gather() {
	t := &u.funcs
	u.scanFunctions(false)
	if t.leapt {
		u.scanFunctions(true)
	}
	byEntry := make([]int, len(t.list))
	for i := range byEntry {
		byEntry[i] = i
	}
	slices.SortFunc(byEntry, func(a, b int) int { return cmp.Compare(t.list[a].entry, t.list[b].entry) })
	for _, i := range byEntry {
		f := &t.list[i]
		for _, s := range u.readCalls(f) {
			if !u.d.spend(1 + len(t.all)/reachesPerStep) {
				return
			}
			t.all = give(t.all, reach{s.lo, s.hi, uint32(i), s.id})
		}
	}
}

// reachesPerStep is the number of reaches moved in the time of one step.
const reachesPerStep = 64

// give adds a reach as LLVM adds to its map: the reach that r starts in is split, and its part
// after r becomes another reach, regardless of others.
func give(all []reach, r reach) []reach {
	if i := above(all, r.lo) - 1; i >= 0 && r.lo < all[i].hi {
		behind := all[i]
		if r.lo > all[i].lo {
			all[i].hi = r.lo
		}
		if r.hi < behind.hi {
			behind.lo = r.hi
			all = put(all, behind)
		}
	}
	return put(all, r)
}

// put adds a reach, or replaces the one with the same start.
func put(all []reach, r reach) []reach {
	i := above(all, r.lo)
	if i > 0 && all[i-1].lo == r.lo {
		all[i-1] = r
		return all
	}
	return slices.Insert(all, i, r)
}

// above returns the index of the first reach that starts above addr.
func above(all []reach, addr uint64) int {
	return sort.Search(len(all), func(i int) bool { return all[i].lo > addr })
}
