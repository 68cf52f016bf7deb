//go:build !linux

package symbolize

// lowerPriority does nothing here.
func lowerPriority(int) {}
