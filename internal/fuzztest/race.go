//go:build race

package fuzztest

// Race reports whether the race detector is on. Work then takes 10 to 40 times as long, and
// allocates more. Tests that count allocations, or run many inputs in one goroutine, are run
// without it by make work.
const Race = true

// slowdown is an upper bound of the slowdown by the race detector, which is 5 to 10.
const slowdown = 10
