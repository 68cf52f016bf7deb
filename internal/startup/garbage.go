package startup

import (
	"os"
	"runtime"
	"runtime/debug"
)

// The garbage collector's percentage (GOGC) by the size of the live heap. In a run that ends soon,
// collecting a small heap does not pay. A process that follows files would keep its garbage. A
// large heap is mostly tables without pointers, which are cheap to collect. The figures are in
// docs/decisions/garbage-collector-percentage.md.
const (
	GarbageSmall  = 300 // for a run that ends
	GarbageMedium = 100
	garbageBig    = 75
	garbageLarge  = 30
	mediumHeap    = 24 << 20 // bytes of live heap
	bigHeap       = 48 << 20
	largeHeap     = 80 << 20

	leastHeap = 8 // the heap may have 1/8 of the limit, whatever is held outside of it

	// bytes added to the limit, for the runtime and the current lines
	overhead = 32 << 20
)

// LimitHeap limits the heap to maxMemory bytes, plus overhead. offHeap lowers the limit by the
// number of bytes held outside of the heap, but leaves 1/leastHeap of maxMemory.
func LimitHeap(maxMemory int64) (offHeap func(bytes int64)) {
	debug.SetMemoryLimit(maxMemory + overhead)
	return func(bytes int64) {
		left := max(maxMemory-bytes, maxMemory/leastHeap)
		debug.SetMemoryLimit(left + overhead)
	}
}

// TuneGarbage adapts the garbage collector's percentage to the live heap, unless the user set GOGC.
// small is the percentage of a small heap.
func TuneGarbage(small int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(small)
		afterCollection(small, small)
	}
}

// afterCollection re-evaluates the percentage after the next collection, when the finalizer of an
// unreachable object runs. percent is the current percentage, and small the percentage of a small
// heap.
func afterCollection(small, percent int) {
	// an object without a pointer might share a memory block with other objects, and its finalizer
	// might never run
	type mark struct{ _ *int }
	runtime.SetFinalizer(new(mark), func(*mark) {
		// The next collection is due when the live heap has grown by percent, so NextGC gives the
		// live heap. Initialising package runtime/metrics would take 4 % of the start of the
		// process.
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		want := small
		switch live := m.NextGC / uint64(100+percent) * 100; {
		case live > largeHeap:
			want = garbageLarge
		case live > bigHeap:
			want = garbageBig
		case live > mediumHeap:
			want = GarbageMedium
		}
		if want != percent {
			debug.SetGCPercent(want)
		}
		afterCollection(small, want)
	})
}
