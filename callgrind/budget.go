package callgrind

import "github.com/symfilter/symfilter/internal/report"

// Bytes of peak heap charged for the contents of a profile, measured with large profiles. A growing
// table is in memory twice while it is copied. The results computed at the end take as much memory
// as the places.
const (
	placeHalves  = 5   // peak bytes for every two bytes of places, calls and jumps
	nameCost     = 144 // bytes of a name, without its text
	functionCost = 160
)

// An allotment is the part of the memory budget that one profile has taken.
type allotment struct {
	report.Share
	names int64 // bytes taken for names
}

// takeName takes the bytes of a name with n bytes of text, if the budget allows it. Names may
// take a third of the budget, since they are useless without places.
func (s *allotment) takeName(n int) bool {
	cost := int64(n + nameCost)
	if s.names+cost > s.Budget.Most()/3 || !s.Take(cost, 0) {
		return false
	}
	s.names += cost
	return true
}
