// Goshop allocates below several functions, and writes its heap profile to the file of its
// argument.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

type shelf struct{ boxes [][]byte }

//go:noinline
func (s *shelf) add(size int) { s.boxes = append(s.boxes, box(size)) }

func box(size int) []byte { return make([]byte, 1000+size) }

//go:noinline
func fill[T any](n int, add func(int)) {
	for i := range n {
		add(i)
	}
}

func main() {
	runtime.MemProfileRate = 1
	var s shelf
	fill[int](300, func(i int) { s.add(i) })
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	if err := pprof.WriteHeapProfile(f); err != nil {
		panic(err)
	}
	if err := f.Close(); err != nil {
		panic(err)
	}
	runtime.KeepAlive(s)
}
