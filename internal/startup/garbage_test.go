package startup

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestTheLimitOfTheHeapLeavesRoomForWhatIsOutside(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	offHeap := LimitHeap(64 << 20)
	for _, test := range []struct{ outside, want int64 }{
		{0, 64 << 20},
		{16 << 20, 48 << 20},
		{60 << 20, 8 << 20},
		{1 << 40, 8 << 20},
		{0, 64 << 20},
	} {
		offHeap(test.outside)
		if got := debug.SetMemoryLimit(-1) - overhead; got != test.want {
			t.Errorf("with %d bytes outside of the heap, it has %d, want %d", test.outside, got, test.want)
		}
	}
}

// A few garbage collections after the size of the heap has changed, the collector's percentage fits
// the new size.
func TestThePercentageFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	TuneGarbage(GarbageSmall)
	var live []byte
	for _, test := range []struct {
		bytes int
		want  uint64
	}{{0, GarbageSmall}, {mediumHeap + 8<<20, GarbageMedium}, {bigHeap + 8<<20, garbageBig}, {largeHeap + 8<<20, garbageLarge}, {0, GarbageSmall}} {
		live = bytes.Repeat([]byte{1}, test.bytes)
		percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			runtime.GC()
			if metrics.Read(percent); percent[0].Value.Uint64() == test.want {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d bytes: the percentage is %d, want %d", len(live), percent[0].Value.Uint64(), test.want)
			}
		}
		runtime.KeepAlive(live)
	}
}

func TestGOGCOfTheUserIsKept(t *testing.T) {
	t.Setenv("GOGC", "70")
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	TuneGarbage(GarbageSmall)
	if got := debug.SetGCPercent(70); got != 70 {
		t.Errorf("the percentage is %d, want 70", got)
	}
}
