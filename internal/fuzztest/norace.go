//go:build !race

package fuzztest

// Race reports whether the race detector watches.
const Race = false

const slowdown = 1
