package fuzztest

import (
	"bytes"
	"hash/fnv"
	"testing"
	"time"
)

// Sizes to which an input is repeated. The large size is measured only if the smaller sizes
// look suspicious: most inputs take a few milliseconds.
const (
	smallSize = 16 << 10
	midSize   = 4 * smallSize
	largeSize = 4 * midSize

	longest = smallSize / 4 // bytes of the longest repeated input
	oneOf   = 64            // while fuzzing, one in oneOf inputs is measured
)

// The largest allowed ratios of the work at one size to the work at the next smaller size.
// Linear work grows four times, quadratic work sixteen times.
const (
	suspicious = 6
	alarming   = 8
	attempts   = 3 // measurements that must all exceed the ratios

	noise = slowdown * 5 * time.Millisecond   // at the middle size: less work cannot be measured reliably
	floor = slowdown * 200 * time.Millisecond // at the large size: less work is harmless
)

// Growth reports an error if the work of run on a repeated input grows faster than the number
// of repetitions. It tries the input, and the input as one line. It compares only measurable
// amounts of processor time, and fails only if three measurements agree. It does not measure
// inputs of more than 4 KiB.
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

// hash returns the same value in each process, so an input that failed is measured again.
func hash(input []byte) uint32 {
	h := fnv.New32a()
	h.Write(input)
	return h.Sum32()
}

// A meter measures the work of run.
type meter struct {
	clock func() time.Duration // processor time used so far
	run   func([]byte)
}

// cost returns the work of run on input, repeated to size bytes.
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
			t.Errorf("the work grows faster than the input: %d KiB take %v, and %d KiB take %v; the input repeats %.200q", midSize>>10, mid, largeSize>>10, large, input)
			return
		}
		mid = m.cost(input, midSize)
	}
}
