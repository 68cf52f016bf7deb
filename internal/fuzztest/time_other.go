//go:build !unix

package fuzztest

import "time"

// processorTime returns 0, since the time is unknown on this system. Only waiting is bounded.
func processorTime() time.Duration { return 0 }
