package fuzztest

import (
	"bytes"
	"hash/fnv"
	"testing"
	"time"
)

// An input is repeated up to these sizes. The large one is for those alone of which the others
// look suspicious: most inputs take a few milliseconds.
const (
	smallSize = 16 << 10
	midSize   = 4 * smallSize
	largeSize = 4 * midSize

	longest = smallSize / 4 // bytes of an input that is worth repeating
	oneOf   = 64            // while inputs are made up, one of so many is repeated
)

// Work that is in proportion to the input grows four times from one size to the next, quadratic work
// sixteen times.
const (
	suspicious = 6
	alarming   = 8
	attempts   = 3 // all of which must be alarming

	noise = slowdown * 5 * time.Millisecond   // of the middle size: nothing can be said of less
	floor = slowdown * 200 * time.Millisecond // of the large size: less is no harm
)

// Growth reports an error if the work that run does on input, repeated, grows faster than the
// number of repetitions, both with the lines of the input and as one line. It compares processor
// time, large amounts only, and three times. An input of more than 4 KiB is not repeated.
func Growth(t testing.TB, input []byte, run func([]byte)) {
	t.Helper()
	if len(input) == 0 || len(input) > longest || fuzzing() && hash(input)%oneOf != 0 {
		return
	}
	m := meter{clock: processorTime, run: run}
	m.check(t, input)
	if line := bytes.ReplaceAll(input, []byte{'\n'}, nil); len(line) > 0 && len(line) < len(input) {
		m.check(t, line)
	}
}

// hash is the same in each process: an input that was found is found again.
func hash(input []byte) uint32 {
	h := fnv.New32a()
	h.Write(input)
	return h.Sum32()
}

// A meter measures the work of run.
type meter struct {
	clock func() time.Duration // time of the processor so far
	run   func([]byte)
}

// cost returns the work on input, repeated to a size.
func (m *meter) cost(input []byte, size int) time.Duration {
	repeated := bytes.Repeat(input, size/len(input))
	start := m.clock()
	m.run(repeated)
	return m.clock() - start
}

func (m *meter) check(t testing.TB, input []byte) {
	t.Helper()
	mid := m.cost(input, midSize)
	if mid < noise || mid < suspicious*m.cost(input, smallSize) {
		return
	}
	for i := 0; ; i++ {
		large := m.cost(input, largeSize)
		if large < floor || large < alarming*mid {
			return
		}
		if i == attempts-1 {
			t.Errorf("the work grows faster than the input: %d KiB take %v, %d KiB %v; they repeat %.200q", midSize>>10, mid, largeSize>>10, large, input)
			return
		}
		mid = m.cost(input, midSize)
	}
}
