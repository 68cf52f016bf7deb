package stacks

import "math"

// plus adds two values. The sum is limited to the range of int64.
func plus(a, b int64) int64 {
	s := a + b
	if (a^s)&(b^s) < 0 {
		if a < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return s
}

// addTo adds the values b to a, as many as a has.
func addTo(a, b []int64) {
	for i := range a[:min(len(a), len(b))] {
		a[i] = plus(a[i], b[i])
	}
}
