//go:build race

package fuzztest

// slowdown is how much longer work takes under the race detector, and more: it is 5 to 10.
const slowdown = 10
