package dwarf

import (
	"fmt"
	"unsafe"
)

// A budget bounds the steps and the memory of a lookup, and counts the cost of lookups.
type budget struct {
	tick   uint64                 // lookups so far
	work   int                    // steps left for the current lookup
	err    error                  // the first damage that the current lookup found outside of units
	read   int64                  // see Read
	meter  *meter                 // shared with the Data of split and supplementary files
	afford func(bytes int64) bool // see Afford; nil: all memory is granted
}

func (b *budget) begin() {
	b.tick++
	b.work, b.err = maxWork, nil
}

// continues makes b continue the current lookup of another Data, with the steps that are left in
// that Data's budget.
func (b *budget) continues(of *budget) { b.tick, b.work, b.err = of.tick, of.work, nil }

// spend takes n steps from the budget of the current lookup. If fewer steps are left, it takes
// them, records damage and returns false.
func (b *budget) spend(n int) bool {
	b.work -= n
	b.meter.steps += int64(n)
	if b.work >= 0 {
		return true
	}
	b.work, b.meter.exhausted = 0, true
	b.damaged("more than %d steps for one address", maxWork)
	return false
}

func (b *budget) damaged(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("dwarf: %s: %w", fmt.Sprintf(format, args...), ErrDamaged)
	}
}

// Afford makes lookups call ask, with a number of bytes, before they allocate a large table of
// rows. If ask returns false, the table is not kept, and the next lookup in that unit runs the line
// program again. Afford must come before the first Lookup.
func (b *budget) Afford(ask func(bytes int64) bool) { b.afford = ask }

// affordRows requests the memory of the table's rows, if they may be many. It requests twice their
// size: the rows are collected first, then copied.
func (b *budget) affordRows(t *lineTable) bool {
	rows := min((len(t.program.buf)-t.program.pos)/rowBytes, maxRows)
	bytes := 2 * int64(rows) * int64(unsafe.Sizeof(lineRow{}))
	return bytes < manyRowBytes || b.afford == nil || b.afford(bytes)
}

// A meter counts the cost of lookups.
type meter struct {
	steps     int64
	exhausted bool
}

// Spent returns the steps of all lookups since the last Spent. A step takes 3 to 10 ns. exhausted
// reports whether a lookup used up its budget.
func (b *budget) Spent() (steps int64, exhausted bool) {
	m := *b.meter
	*b.meter = meter{}
	return m.steps, m.exhausted
}

// Read returns an estimate of the bytes of the file that lookups have read since the last Read. The
// pages of these bytes stay in memory until the file's ReleasePages is called.
func (b *budget) Read() int64 {
	n := b.read
	b.read = 0
	return n
}

// Estimates for Read: the bytes read for the inlined calls of a function, and for a name. The
// system maps further pages around each page, but functions and names often share pages.
const (
	callBytes = 16 << 10
	nameBytes = 1 << 10
)
