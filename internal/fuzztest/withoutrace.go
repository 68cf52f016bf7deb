package fuzztest

import "testing"

// RunByWork is the message of each test that WithoutRace skips.
const RunByWork = "make work runs this test without the race detector"

// WithoutRace skips a test under the race detector. It is for tests that run in one goroutine,
// where the detector finds nothing. Such tests count allocations, which the detector changes, or
// take 5 to 40 times as long with the detector. Only the test function itself may call it, since
// make work reads the names of these tests from the source.
func WithoutRace(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip(RunByWork)
	}
}
