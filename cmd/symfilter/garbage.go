package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// The garbage collector's percentage (GOGC) by the size of the live heap. Collecting a small heap does
// not pay in a run that ends; a process that follows files stays, and so would its garbage. A large heap
// is mostly tables without pointers, which cost the collector little. Figures are in ARCHITECTURE.md
// under Decisions.
const (
	garbageSmall  = 300
	garbageMedium = 100
	garbageLarge  = 30
	mediumHeap    = 24 << 20 // bytes of live heap
	largeHeap     = 80 << 20

	leastHeap = 8 // the heap may have 1/8 of --max-memory, whatever is held outside of it
)

// limitHeap limits the heap to --max-memory. It returns a function that takes the number of bytes held
// outside of the heap, and lowers the limit by them.
func limitHeap(maxMemory memorySize) (offHeap func(bytes int64)) {
	debug.SetMemoryLimit(int64(maxMemory) + overhead)
	return func(bytes int64) {
		left := max(int64(maxMemory)-bytes, int64(maxMemory)/leastHeap)
		debug.SetMemoryLimit(left + overhead)
	}
}

// tuneGarbage adapts the garbage collector's percentage to the live heap, unless the user set GOGC. That
// of a small heap is small.
func tuneGarbage(small int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(small)
		afterCollection(small, small)
	}
}

// afterCollection re-evaluates the percentage, now percent, after the next collection: the finalizer
// of an unreachable object runs then. small is the percentage of a small heap.
func afterCollection(small, percent int) {
	type mark struct{ _ *int } // a pointer keeps the object out of a block shared with others, whose finalizer might never run
	runtime.SetFinalizer(new(mark), func(*mark) {
		// package runtime/metrics knows the live heap, but its initialisation takes 4 % of the start of
		// the process; the next collection is due when the heap has grown by percent since the last
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		want := small
		switch live := m.NextGC / uint64(100+percent) * 100; {
		case live > largeHeap:
			want = garbageLarge
		case live > mediumHeap:
			want = garbageMedium
		}
		if want != percent {
			debug.SetGCPercent(want)
		}
		afterCollection(small, want)
	})
}
