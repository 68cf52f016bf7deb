//go:build !unix

package fuzztest

import "time"

// processorTime returns 0, since the time is not known on this system: only waiting is bounded.
func processorTime() time.Duration { return 0 }
