// Package fuzztest watches one input of a fuzz target: Go's fuzzer notices
// crashes, but neither hangs nor memory. Only tests import it.
package fuzztest

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// What one input may cost.
const (
	work   = 2 * time.Second  // of the processor, so that a busy machine fails no test
	wait   = 60 * time.Second // in all: something that waits for ever does no work
	growth = 256 << 20        // bytes of heap
)

// Watch watches the work on input until the returned function is called. An
// input that takes more than two seconds of work, or more than 256 MiB of
// heap, ends the process with the input on standard error, so that the fuzzer
// records it as a crash.
func Watch(t testing.TB, input any) (done func()) {
	t.Helper()
	before, worked := heap(), processorTime()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		end := time.After(wait)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-end:
				give("takes more than "+wait.String(), input)
			case <-tick.C:
				if processorTime()-worked > work {
					give("takes more than "+work.String()+" of work", input)
				}
				if n := heap() - before; n > growth {
					give(fmt.Sprintf("takes %d MiB", n>>20), input)
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		if n := heap() - before; n > growth {
			t.Errorf("the heap grew by %d MiB", n>>20)
		}
	}
}

func give(what string, input any) {
	fmt.Fprintf(os.Stderr, "an input %s: %.4096q\n", what, input)
	os.Exit(2)
}

// Allocated returns how many bytes of heap the process has ever allocated.
func Allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// heap returns the bytes of live and dead heap objects.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
