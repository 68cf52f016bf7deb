//go:build !race

package fuzztest

const slowdown = 1
