//go:build race

package fuzztest

// Race reports whether the race detector is on. Work then takes 5 to 40 times as long, and
// allocates more. Tests that count allocations, or run many inputs in one goroutine, are run
// without it by make work.
const Race = true

// slowdown is the factor by which time limits grow under the race detector.
const slowdown = 10
