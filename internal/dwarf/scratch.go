package dwarf

import "sync"

// A scratch is memory that a lookup, or the walk over a unit, needs only while it runs. Afterwards
// it returns to a pool, so that a file with a single lookup keeps none of it. Its lists begin with
// room for most units: a list that grows step by step touches several times the pages that it needs
// in the end.
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

// space returns the scratch of the current lookup, which trim returns to the pool.
func (d *Data) space() *scratch {
	if d.scratch == nil {
		d.scratch = scratches.Get().(*scratch)
	}
	return d.scratch
}

// trim returns the scratch of d and of its supplementary file to the pool, except lists that an
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

// room returns an empty list in the memory of list if that has room for n, otherwise in new memory
// whose pages are not touched before they are written: unlike slices.Grow, make does not clear
// memory that the system has cleared.
func room[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, 0, n)
	}
	return list[:0]
}
