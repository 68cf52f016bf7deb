package judge

import (
	"math"
	"slices"
)

// How rare a call that leads to the next frame is by chance depends on the file: the weight by
// distance is a bound for all files. For a trace that misses few bits it is counted in this file.

const (
	refinedBits = 10      // that the evidence may lack to be counted in the file
	linkSamples = 1 << 15 // places at which the two addresses of a call and its frame are tried
)

// refine adds to in, the inference for the best bias, the bits by which calls that lead to the next
// frame are rarer in this file than their weights say. It returns the work.
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

// countLinks moves the addresses of a call and the frame that it leads to through the code, and
// returns how often there is such a call by chance, the real one included. They keep their place
// among 16 bytes, to which functions are aligned.
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
