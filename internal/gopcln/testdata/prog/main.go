// Prog has what the table of a Go program can hold: inlined calls, methods, closures, generic
// functions.
package main

import (
	"os"
	"sort"
	"strconv"
)

type list[T any] struct{ v []T }

func (l *list[T]) add(v T) { l.v = append(l.v, v) }

func square(x int) int { return x * x }

func sum(xs []int) (n int) {
	for _, x := range xs {
		n += square(x)
	}
	return n
}

//go:noinline
func crash(s string) { panic(s) }

func main() {
	var l list[int]
	l.add(len(os.Args))
	sort.Ints(l.v)
	os.Stdout.WriteString(strconv.Itoa(sum(l.v)) + "\n")
	defer func() { recover() }()
	crash("x")
}
