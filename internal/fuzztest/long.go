package fuzztest

import "os"

// Long reports whether TEST_LONG asks for the full sizes, as make test-long does.
func Long() bool { return os.Getenv("TEST_LONG") == "1" }

// LongOr returns long if TEST_LONG asks for the full sizes, else short.
func LongOr[T any](long, short T) T {
	if Long() {
		return long
	}
	return short
}
