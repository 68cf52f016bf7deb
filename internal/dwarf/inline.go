package dwarf

import (
	"cmp"
	"slices"
)

// A call is an inlined call or, as the first element of a function's list, the function itself.
// Large programs have a million calls, of 32 bytes each.
type call struct {
	name     uint64 // offset in section; while unread, the entry at which entryName begins
	entry    uint32
	parent   uint32 // index, in the function's calls, of the call around this one; or noParent
	file     uint32 // number of the source file of the call
	line     uint32
	column   uint32
	section  section
	function bool // the entry is a function, not an inlined call
	state    nameState
}

type nameState uint8

const (
	unread nameState = iota
	nameless
	plainName
	linkageName
)

const noParent = ^uint32(0)

// A layout is the arrangement of the ranges of a function's calls. It decides how the call that
// covers an address is found.
type layout uint8

const (
	tidy   layout = iota // binary search: any two ranges are nested or disjoint
	untidy               // pick over the ranges: some overlap only partly
)

// A callStart assigns the addresses from lo to the next callStart to a call. If call is noParent,
// no inlined call covers them. Large programs have two million callStarts.
type callStart struct {
	lo   uint32 // bytes from function.base
	call uint32
}

// startsUntil returns the number of starts at addr or below.
func startsUntil(starts []callStart, base, addr uint64) int {
	if addr < base {
		return 0
	}
	rel := addr - base
	i, end := 0, len(starts)
	for i < end {
		if m := int(uint(i+end) >> 1); uint64(starts[m].lo) > rel {
			end = m
		} else {
			i = m + 1
		}
	}
	return i
}

// innermost finds the innermost call that covers addr, in any function. It returns all calls of
// that function, and the index of the innermost call among them; -1 if no function covers addr.
func (u *unit) innermost(addr uint64) (int, []call) {
	fn := u.functionAt(addr)
	switch {
	case fn < 0:
		return -1, nil
	case u.funcs.list[fn].coldPart:
		return u.callAmong(addr)
	}
	return u.callAt(fn, addr)
}

// callAt returns the innermost call of a function that covers addr, as an index in the function's
// calls; -1 if the calls could not be read. The first of the calls is the function itself.
func (u *unit) callAt(fn int, addr uint64) (int, []call) {
	t := &u.funcs
	f := &t.list[fn]
	if !f.parsed {
		f.parsed = true
		u.parseCalls(f)
	}
	if f.numCalls == 0 {
		return -1, nil
	}
	calls := t.calls[f.calls : f.calls+f.numCalls]
	if f.layout == tidy {
		starts := t.starts[f.places : f.places+f.numPlaces]
		if i := startsUntil(starts, f.base, addr); i > 0 && starts[i-1].call != noParent {
			return int(starts[i-1].call), calls
		}
		return 0, calls
	}
	spans := t.spans[f.places : f.places+f.numPlaces]
	if i := pick(spans, addr); i >= 0 {
		return int(spans[i].id), calls
	}
	return 0, calls
}

func (u *unit) parseCalls(f *function) {
	u.keepSpans(f, u.readCalls(f))
}

// keepSpans stores the ranges of f's calls so that callAt can search them: in table.starts if they
// are tidy, otherwise in table.spans.
func (u *unit) keepSpans(f *function, spans []span) {
	table := &u.funcs
	if len(table.starts)/2+len(table.spans)+len(spans) > maxRanges {
		u.damaged("more than %d ranges of inlined calls", maxRanges)
		return
	}
	if table.sortCalls(f, spans) {
		f.layout = tidy
		return
	}
	f.layout = untidy
	f.places, f.numPlaces = uint32(len(table.spans)), uint32(len(spans))
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.order, b.order) })
	table.spans = append(table.spans, spans...)
}

// readCalls reads the calls inlined into a function. It returns their ranges in the order of their
// entries, in memory of the scratch.
func (u *unit) readCalls(f *function) []span {
	d := u.d
	table := &u.funcs
	first := len(table.calls)
	spans := d.space().spans[:0]
	limit := min(maxDIEs, d.work)
	w := u.walkFrom(f.entry, isCall, leapCalls, limit)
	open := make(openEntries, 0, 16)
	for w.next() {
		c := w.attributes()
		e := u.readEntry(&c, w.decl)
		switch {
		case c.bad:
			w.fault = "inlined call"
		case len(table.calls) >= maxCalls && w.depth > 0:
			w.fault = "too many inlined calls"
		case w.depth > maxDepth:
			w.fault = "nesting"
		}
		if w.fault != "" {
			break
		}
		w.pos = c.pos
		id := uint32(len(table.calls) - first)
		var parent uint64
		open, parent = open.around(&w, uint64(noParent))
		if w.decl.children {
			open = append(open, openEntry{w.depth, uint64(id)})
		}
		spans = u.appendPC(spans, e.lowPC, e.highPC, e.ranges, id)
		table.calls = append(table.calls, call{entry: uint32(w.entry), name: uint64(u.nameStart(uint32(w.entry), &e)), parent: uint32(parent),
			file: e.callFile, line: e.callLine, column: e.callColumn, function: w.decl.flags&isFunction != 0})
	}
	if w.fault != "" {
		u.damaged("%s in function at %#x", w.fault, f.entry)
	}
	d.spend(limit - w.left)
	d.read += callBytes
	d.space().spans = spans
	f.calls, f.numCalls = uint32(first), uint32(len(table.calls)-first)
	return spans
}

// sortCalls sorts spans and reports whether they are tidy: overlapping ranges are nested, with the
// later entry inside the earlier entry, and all ranges are within maxSequence bytes. For tidy
// spans, it prepares a binary search for the deepest range that covers an address, which is the
// range that pick would find.
func (t *functionTable) sortCalls(f *function, spans []span) bool {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(b.hi, a.hi), cmp.Compare(a.order, b.order))
	})
	if len(spans) > 0 {
		f.base = spans[0].lo
	}
	f.places, f.numPlaces = uint32(len(t.starts)), 0
	starts := t.starts
	var open []span // the ranges that cover the current address, outermost first
	end := func(s span) {
		outer := uint32(noParent)
		if len(open) > 0 {
			outer = open[len(open)-1].id
		}
		starts = appendStart(starts, int(f.places), uint32(s.hi-f.base), outer)
	}
	for _, s := range spans {
		for len(open) > 0 && open[len(open)-1].hi <= s.lo {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			end(last)
		}
		if n := len(open); s.hi-f.base > maxSequence || n > 0 && (s.hi > open[n-1].hi || s.order < open[n-1].order) {
			return false
		}
		open = append(open, s)
		starts = appendStart(starts, int(f.places), uint32(s.lo-f.base), s.id)
	}
	for len(open) > 0 {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		end(last)
	}
	t.starts = starts
	f.numPlaces = uint32(len(starts)) - f.places
	return true
}

// appendStart appends a start. If several starts have the same address, the last one wins. Starts
// before first belong to other functions.
func appendStart(starts []callStart, first int, lo, id uint32) []callStart {
	if n := len(starts); n > first && starts[n-1].lo == lo {
		starts[n-1].call = id
		return starts
	}
	return append(starts, callStart{lo, id})
}
