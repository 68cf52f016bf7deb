//go:build !race

package fuzztest

// Race reports whether the race detector is on.
const Race = false

const slowdown = 1
