package dwarf

import "sync"

// A scratch is memory for one lookup, or one walk over a unit. Afterwards it returns to a pool, so
// that a file keeps none of it. Its lists start with room for most units: growing step by step
// would touch several times as many pages.
type scratch struct {
	spans     []span
	functions []function
	rows      []lineRow
	seqs      []sequence
	near      []unitRange
	abbrevs   abbrevTable
	cold      coldRun // uses rows and seqs while it runs
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// space returns the scratch of the current lookup. trim returns it to the pool.
func (d *Data) space() *scratch {
	if d.scratch == nil {
		d.scratch = scratches.Get().(*scratch)
	}
	return d.scratch
}

// trim returns the scratches of d and of its supplementary file to the pool, except lists that an
// unusual lookup made large.
func (d *Data) trim() {
	if alt := d.links.supplementary(); alt != nil {
		alt.trim()
	}
	s := d.scratch
	if s == nil {
		return
	}
	d.scratch = nil
	trimmed(&s.spans)
	trimmed(&s.functions)
	trimmed(&s.rows)
	trimmed(&s.seqs)
	trimmed(&s.near)
	if s.abbrevs.footprint() > maxScratchKept {
		s.abbrevs = abbrevTable{}
	}
	s.abbrevs.source = nil // refers to a file that may be closed
	if s.cold.m.d != nil {
		s.cold.release()
	}
	scratches.Put(s)
}

func trimmed[T any](list *[]T) {
	if sizeOf(*list) > maxScratchKept {
		*list = nil
	}
}

// room returns an empty list with room for n: in the memory of list if that suffices, otherwise in
// new memory. It uses make: slices.Grow would touch every page of the new memory to clear it.
func room[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, 0, n)
	}
	return list[:0]
}
