//go:build !linux

package symbolize

// lowerPriority does nothing: only on Linux a single thread has a priority of its own.
func lowerPriority(int) {}
