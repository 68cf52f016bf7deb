package callgrind

import "sync/atomic"

// DefaultMaxMemory is the heap, in bytes, that a profile may take when Options.Budget is nil:
// as much as the symbolizer's default.
const DefaultMaxMemory = 512 << 20

// What the account charges, in bytes of peak heap. Measured with floods of each alone: tables
// that grow are there twice while they are copied, and what is computed of a place at the end is
// of the size of the place.
const (
	placeHalves  = 5   // half bytes of peak for each byte of places, calls and jumps
	nameCost     = 144 // of a name, beside its text
	functionCost = 160
)

// A Budget is the heap that the profiles read with it may take together. It may be shared by
// Reports of different goroutines.
type Budget struct {
	most int64 // bytes
	used atomic.Int64
}

// NewBudget returns a Budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{most: bytes} }

// An allotment is what one profile has taken of a Budget.
type allotment struct {
	of    *Budget
	taken int64
	names int64 // of taken, for names
}

// take reports whether n more bytes fit the budget and leave spare bytes of it, and takes them if
// they do.
func (s *allotment) take(n, spare int64) bool {
	if s.of.used.Add(n) > s.of.most-spare {
		s.of.used.Add(-n)
		return false
	}
	s.taken += n
	return true
}

// takeName is take for a name of n bytes. Names may take a third: without places they are of no
// use.
func (s *allotment) takeName(n int) bool {
	cost := int64(n + nameCost)
	if s.names+cost > s.of.most/3 || !s.take(cost, 0) {
		return false
	}
	s.names += cost
	return true
}

// release returns all of it.
func (s *allotment) release() {
	s.of.used.Add(-s.taken)
	s.taken, s.names = 0, 0
}
