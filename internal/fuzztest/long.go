package fuzztest

import "os"

// Long reports whether tests run in full size: TEST_LONG=1, which make test-long sets.
func Long() bool { return os.Getenv("TEST_LONG") == "1" }

// LongOr returns long if tests run in full size, else short.
func LongOr[T any](long, short T) T {
	if Long() {
		return long
	}
	return short
}
