package symbolize

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// What one input may cost a fuzz target, which the fuzzer itself does not
// notice.
const (
	watchTime = 2 * time.Second
	watchHeap = 256 << 20 // bytes of growth
)

// watch ends the process with the input when the time or the heap of one input
// gets out of hand; the function that it returns ends the watching.
func watch(t testing.TB, input any) (end func()) {
	t.Helper()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	timer := time.AfterFunc(watchTime, func() {
		fmt.Fprintf(os.Stderr, "hangs for %v: %.4096q\n", watchTime, input)
		os.Exit(2)
	})
	return func() {
		timer.Stop()
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > watchHeap {
			t.Errorf("the heap grew by %d MiB", grown>>20)
		}
	}
}
