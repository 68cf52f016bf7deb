//go:build race

package fuzztest

// Race reports whether the race detector is on. Work then takes 5 to 40 times as long, and
// allocates more. The command "make work" runs some tests without the detector: tests that count
// allocations, or that run many inputs in one goroutine.
const Race = true

// slowdown is the factor by which time limits grow under the race detector.
const slowdown = 10
