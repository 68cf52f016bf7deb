//go:build !unix

package fuzztest

import "time"

// processorTime returns 0: this system does not report it. Watch then bounds only elapsed time and
// heap, and Growth finds nothing.
func processorTime() time.Duration { return 0 }
