package judge

import (
	"math"
	"slices"
)

// How rarely a call leads to the called frame by chance depends on the file: the weight by distance
// is a lower bound for all files. If a trace lacks few bits, the calls of its file are counted.

const (
	refinedBits = 10      // maximum bits that the evidence may lack for the calls to be counted
	linkSamples = 1 << 15 // about how many places are tried for the addresses of two frames
)

// refine adds to in, the inference for the best bias, the bits by which calls that lead to the
// called frame are rarer in this file than their weights say. It returns the work.
func (e *election) refine(in *Inference) (work int) {
	var voted []uint64
	for i, f := range e.frames {
		if i == 0 || !isReturn(f) || !e.has(f, e.best.bias) || e.isInterrupted(i, e.best.bias) {
			continue
		}
		addr := f.Addr - e.best.bias
		weight, ok := e.link(f, e.frames[i-1], e.best.bias)
		if _, direct := e.image.File.CallTarget(addr); !ok || !direct || slices.Contains(voted, addr) {
			continue
		}
		voted = append(voted, addr)
		linked, tried := e.countLinks(f, e.frames[i-1])
		work += tried
		in.Bits += max(0, math.Log2(float64(tried+1)/float64(linked+1))-weight-e.bitsOf(f.Addr))
	}
	return work
}

// countLinks moves the addresses of outer and inner together through the code. It returns the
// number of places tried, and at how many of these a call ends at outer's address that leads to the
// function at inner's. The addresses keep their offsets in 16 bytes, to which functions are
// aligned.
func (e *election) countLinks(outer, inner *Frame) (linked, tried int) {
	const align = 16
	distance := inner.Addr - outer.Addr
	step := max(align, e.image.codeSize()/linkSamples&^(align-1))
	for s := range e.image.code() {
		for at := s.Addr + (outer.Addr-s.Addr)%align; at < s.Addr+s.FileSize && tried < 2*linkSamples; at += step {
			if at == s.Addr || !e.image.isCode(at-1) {
				continue
			}
			tried++
			end := e.image.callEnd(at, outer.Call)
			target, ok := e.image.File.CallTarget(end)
			if to := at + distance - 1; !ok || to < target {
				continue
			} else if start, stop, ok := e.image.File.UnwindRange(target); ok && start == target && to < stop {
				linked++
			}
		}
	}
	return linked, tried
}
