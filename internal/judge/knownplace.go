package judge

import (
	"math"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// Two kinds of return addresses have a known place in their file: in the code at which a program
// begins, and in a signal trampoline. A frame is there at one of the biases alone. So its weight is
// the logarithm of the biases tried, less the logarithm of the frames, any of which may be there,
// and less one bit because a trace need not have such a frame.

// placeBits returns the weight, in bits, of a frame at a place that the file has once.
func (e *election) placeBits() float64 {
	return max(0, math.Log2(float64(max(e.tried, 1)))-math.Log2(float64(len(e.frames)))-1)
}

// atTrampoline reports whether frame i is in the code to which a signal handler returns.
func (e *election) atTrampoline(i int, bias uint64) bool {
	f := e.frames[i]
	if !e.has(f, bias) {
		return false
	}
	if f.Call != dialect.Adjusted {
		return e.image.isTrampoline(f.Addr - bias)
	}
	for _, less := range []uint64{1, 2, 4} {
		if e.image.isTrampoline(f.Addr - bias + less) {
			return true
		}
	}
	return false
}

// isInterrupted reports whether a signal has interrupted frame i.
func (e *election) isInterrupted(i int, bias uint64) bool {
	return i > 0 && follows(e.frames[i], e.frames[i-1]) && e.atTrampoline(i-1, bias)
}

// follows reports whether outer may be the caller of inner, the previous frame of the log.
func follows(outer, inner *Frame) bool { return outer.Number < 0 || outer.Number == inner.Number+1 }

// startFrames is the maximum number of frames of the C library between the code at which a program
// begins and main.
const startFrames = 2

// entryBits returns the weight, in bits, of frame i if it is in the code at which the program
// begins, plus the weight of main if that is at most startFrames further in. It returns 0 for any
// other frame.
func (e *election) entryBits(i int, bias uint64) (bits float64) {
	file := e.image.File
	if past := e.frames[i].Addr - bias - file.Entry; file.Entry == 0 || past == 0 || past > object.EntrySpan {
		return 0
	}
	bits = e.placeBits()
	start, end, ok := file.UnwindRange(file.Main())
	if !ok || start != file.Main() {
		return bits
	}
	for j := i - 1; j >= max(0, i-1-startFrames) && follows(e.frames[j+1], e.frames[j]); j-- {
		if at := e.frames[j].Addr - bias - 1; at >= start && at < end {
			mainBits := math.Log2(float64(max(e.image.codeSize(), 1))/float64(end-start)) - math.Log2(1+startFrames)
			return bits + max(0, min(mainBits, maxLinkWeight))
		}
	}
	return bits
}
