package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage may stand, in percent of the heap in use. A small heap is
// not worth collecting; a large one is mostly tables that the collector need
// not look into.
const (
	garbageSmall  = 300
	garbageMedium = 100
	garbageLarge  = 30
	mediumHeap    = 24 << 20 // bytes in use
	largeHeap     = 80 << 20

	leastHeap = 8 // 1/8 of --max-memory is for the heap, whatever is held outside of it
)

// limitHeap gives the heap what --max-memory leaves beside what is held outside
// of it, and returns what is told of the latter.
func limitHeap(maxMemory memorySize) (offHeap func(bytes int64)) {
	debug.SetMemoryLimit(int64(maxMemory) + overhead)
	return func(bytes int64) {
		left := max(int64(maxMemory)-bytes, int64(maxMemory)/leastHeap)
		debug.SetMemoryLimit(left + overhead)
	}
}

// tuneGarbage has the collector follow these, unless the user said otherwise.
func tuneGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageSmall)
		afterCollection(garbageSmall)
	}
}

// afterCollection sees to it that the percentage, now that, is looked at when
// the next collection ends: what nobody refers to is told of then.
func afterCollection(percent int) {
	type mark struct{ _ *int } // not one that shares its memory with others
	runtime.SetFinalizer(new(mark), func(*mark) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		want := garbageSmall
		if live[0].Value.Kind() == metrics.KindUint64 {
			switch n := live[0].Value.Uint64(); {
			case n > largeHeap:
				want = garbageLarge
			case n > mediumHeap:
				want = garbageMedium
			}
		}
		if want != percent {
			debug.SetGCPercent(want)
		}
		afterCollection(want)
	})
}
