// Package fuzztest watches one input of a fuzz target: Go's fuzzer notices
// crashes, but neither hangs nor memory. Only tests import it.
package fuzztest

import (
	"fmt"
	"os"
	"runtime/metrics"
	"testing"
	"time"
)

// What one input may cost.
const (
	deadline = 2 * time.Second
	growth   = 256 << 20 // bytes of heap
)

// Watch watches the work on input until the returned function is called. An
// input that takes more than two seconds, or more than 256 MiB of heap, ends
// the process with the input on standard error, so that the fuzzer records
// it as a crash.
func Watch(t testing.TB, input any) (done func()) {
	t.Helper()
	before := heap()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		end := time.After(deadline)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-end:
				give("takes more than "+deadline.String(), input)
			case <-tick.C:
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

// heap returns the bytes of live and dead heap objects.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
