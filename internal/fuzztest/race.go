//go:build race

package fuzztest

// Race reports whether the race detector watches: then work takes 10 to 40 times as long, and more
// is allocated. Tests that count what is allocated, or that run many inputs through one goroutine,
// are run without it: make work.
const Race = true

// slowdown is an upper bound of the slowdown by the race detector, which is 5 to 10.
const slowdown = 10
