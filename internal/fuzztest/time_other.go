//go:build !unix

package fuzztest

import "time"

// processorTime is not known on this system, so only waiting is bounded.
func processorTime() time.Duration { return 0 }
