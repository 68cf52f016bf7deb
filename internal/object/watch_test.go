package object

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// What one fuzz input may cost. Go's fuzzer notices neither hangs nor memory by itself.
const (
	watchTime = 2 * time.Second
	watchHeap = 256 << 20 // bytes
)

// watch ends the process when the rest of the test takes too long, and fails the test when it left too large a heap.
func watch(t *testing.T) {
	t.Helper()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	timer := time.AfterFunc(watchTime, func() { panic("one input has taken longer than " + watchTime.String()) })
	t.Cleanup(func() {
		timer.Stop()
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > watchHeap {
			t.Errorf("one input has allocated %d bytes", grown)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
