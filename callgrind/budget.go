package callgrind

import "github.com/symfilter/symfilter/internal/report"

// Bytes of peak heap that a profile is charged for its parts, each measured with a large profile
// that has parts of this kind only. A growing table exists twice while it is copied, and the
// results computed at the end take as much as the places.
const (
	placeHalves  = 5   // peak bytes for every two bytes of places, calls and jumps
	nameCost     = 144 // bytes of a name, without its text
	functionCost = 160
)

// An allotment is the part of the budget that one profile has taken.
type allotment struct {
	report.Share
	names int64 // the bytes taken for names
}

// takeName takes the bytes of a name whose text has n bytes, and reports whether the budget allowed
// it. Names may take a third of the budget: without places they are of no use.
func (s *allotment) takeName(n int) bool {
	cost := int64(n + nameCost)
	if s.names+cost > s.Budget.Most()/3 || !s.Take(cost, 0) {
		return false
	}
	s.names += cost
	return true
}
