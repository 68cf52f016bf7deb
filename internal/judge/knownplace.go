package judge

import (
	"math"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// Two kinds of return addresses have a known location in their file: the code at which a program
// begins, and a signal trampoline. A frame at such a location is evidence for a bias, since only
// one of the tried biases puts it there. Its weight is the logarithm of the number of biases tried,
// minus the logarithm of the number of frames that may be there. One more bit is subtracted,
// because a trace need not have such a frame.

// placeBits returns the weight, in bits, of a frame at a location that the file has once. choices
// is the number of frames that may be there.
func (e *election) placeBits(choices int) float64 {
	return max(0, math.Log2(float64(max(e.tried, 1)))-math.Log2(float64(choices))-1)
}

// atTrampoline reports whether, with this bias, frame i is in the code to which a signal handler
// returns.
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

// isInterrupted reports whether, with this bias, a signal has interrupted frame i.
func (e *election) isInterrupted(i int, bias uint64) bool {
	return i > 0 && follows(e.frames[i], e.frames[i-1]) && e.atTrampoline(i-1, bias)
}

// follows reports whether outer may be the caller of inner, the previous frame of the log.
func follows(outer, inner *Frame) bool { return outer.Number < 0 || outer.Number == inner.Number+1 }

// startBits returns the weight, in bits, of frame i if it is at the beginning of the program: in
// the entry code, or in main. If a frame further out than main is in the file, but not in the entry
// code, main has weight 0. Any other frame has weight 0.
func (e *election) startBits(i int, bias uint64) float64 {
	f := e.frames[i]
	if e.isEntry(f, bias) {
		choices := len(e.frames)
		if i == len(e.frames)-1 {
			choices = 1
		}
		// the caller also adds callBits for this frame: do not count them twice
		return max(0, e.placeBits(choices)-e.callBits(i, bias))
	}
	main := e.image.mainRange()
	if !main.has(e.image.File.InCall(f.Addr - bias)) {
		return 0
	}
	for _, outer := range e.frames[i+1:] {
		if e.has(outer, bias) && !e.isEntry(outer, bias) {
			return 0
		}
	}
	// one bit less, because a stack need not begin in main
	return max(0, min(math.Log2(float64(max(e.image.codeSize(), 1))/float64(main.end-main.start))-1, maxLinkWeight))
}

// mainRange returns the code of main, or an empty range if unknown.
func (m *Image) mainRange() codeRange {
	at := m.File.Main()
	if start, end, ok := m.File.UnwindRange(at); ok && start == at {
		return codeRange{start, end}
	}
	return codeRange{}
}

// isEntry reports whether, with this bias, f is in the code at which the program begins.
func (e *election) isEntry(f *Frame, bias uint64) bool {
	entry := e.image.File.Entry
	past := f.Addr - bias - entry
	return entry != 0 && past > 0 && past <= object.EntrySpan
}
