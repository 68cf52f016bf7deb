package stacks

import "math"

// Plus adds two values, limited to int64: larger counts are hostile or damaged.
func Plus(a, b int64) int64 {
	s := a + b
	if (a^s)&(b^s) < 0 {
		if a < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return s
}

// Times multiplies two values, limited like Plus.
func Times(a, b int64) int64 {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		if (a < 0) != (b < 0) {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return p
}

// AddTo adds the values b to a, as many as both have.
func AddTo(a, b []int64) {
	for i := range a[:min(len(a), len(b))] {
		a[i] = Plus(a[i], b[i])
	}
}
