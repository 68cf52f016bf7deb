package callgrind

import "github.com/symfilter/symfilter/report"

// What the account charges, in bytes of peak heap. Measured with floods of each alone: tables
// that grow are there twice while they are copied, and what is computed of a place at the end is
// of the size of the place.
const (
	placeHalves  = 5   // half bytes of peak for each byte of places, calls and jumps
	nameCost     = 144 // of a name, beside its text
	functionCost = 160
)

// An allotment is what one profile has taken of the budget.
type allotment struct {
	report.Share
	names int64 // of the bytes taken, for names
}

// takeName is Take for a name of n bytes. Names may take a third: without places they are of no
// use.
func (s *allotment) takeName(n int) bool {
	cost := int64(n + nameCost)
	if s.names+cost > s.Budget.Most()/3 || !s.Take(cost, 0) {
		return false
	}
	s.names += cost
	return true
}
