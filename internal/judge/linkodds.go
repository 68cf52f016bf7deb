package judge

import (
	"math"
	"slices"
)

// In some files, calls lead to the called frame by coincidence more often than in other files. The
// weight by distance is a lower bound for all files. If a trace lacks only a few bits of evidence,
// refine counts the coincidences in the trace's file.

const (
	refinedBits = 10      // maximum bits that the evidence may lack for the calls to be counted
	linkSamples = 1 << 15 // approximate number of positions tried for the addresses of two frames
)

// The weight, in bits, of a call that leads to the function of the called frame. It grows with the
// distance between the two frames.
const (
	nearLink            = 2 << 10 // bytes between the two return addresses
	linkBits            = 5       // bits up to the distance nearLink
	linkBitsPerDoubling = 0.75    // further bits for each doubling of the distance
)

// link returns the weight of the call of outer if the call leads to the function of inner, or to a
// function that jumps there. Between distant frames such a call is rarer in a wrong file, since
// most calls lead to near functions. linkBits and linkBitsPerDoubling are below the figures
// measured in libc, gdb and a program of 250 KB.
func (e *election) link(outer, inner *Frame, bias uint64) (weight float64, how linkKind) {
	if !e.has(inner, bias) || !follows(outer, inner) {
		return 0, unlinked
	}
	size, jumps := uint64(0), 0
	end := e.image.callEnd(outer.Addr-bias, outer.Call)
	for _, r := range e.image.calledRanges(end, e.image) {
		if how, jumps = e.leads(end, &r, e.image.File.InCall(inner.Addr-bias)); how != unlinked {
			size = r.end - r.start
			break
		}
	}
	if size == 0 {
		return 0, unlinked
	}
	distance := max(outer.Addr, inner.Addr) - min(outer.Addr, inner.Addr)
	weight = linkBits + linkBitsPerDoubling*math.Log2(float64(max(distance, nearLink))/nearLink)
	// in a tiny program all functions are near
	most := math.Log2(float64(max(e.image.codeSize(), size)) / float64(size))
	// each function reached by a jump may contain the frame by coincidence
	return max(0, min(weight, most, maxLinkWeight)-math.Log2(float64(1+jumps))), how
}

// If the target of a call neither contains the called frame nor jumps to it, the bias is wrong, or
// the file is another build. Some real stacks have such calls, through unknown jumps.
const (
	contradictionBits  = 6
	mostContradictions = 2 // in a short stack; one more for each 16 frames
)

// contradicts reports whether the call of outer leads to a function that does not contain inner.
func (e *election) contradicts(outer, inner *Frame, bias uint64) bool {
	if e.trace == nil || !e.has(inner, bias) || !follows(outer, inner) {
		return false
	}
	end := e.image.callEnd(outer.Addr-bias, outer.Call)
	return e.trace.leadOf(e.image, end, e.image.File.InCall(inner.Addr-bias)) == elsewhere
}

// A linkKind classifies a call: whether it leads to the function of the next frame, and how.
type linkKind int

const (
	unlinked linkKind = iota
	calling           // the target is the beginning of the function
	jumping           // the target jumps to the function
)

// leads reports how a call leads to addr. The call ends at the address end, and its target is the
// function r. If r jumps to code that contains addr, such as its cold part, leads sets r to this
// code, and returns the number of r's jumps.
func (e *election) leads(end uint64, r *codeRange, addr uint64) (how linkKind, jumps int) {
	if r.has(addr) {
		return calling, 0
	}
	machine, readable := e.image.codeCalled(end)
	if e.trace == nil || !readable {
		return unlinked, 0
	}
	for _, to := range e.trace.jumpsFrom(e.image, machine, r.start).to {
		for _, code := range e.image.codeAt(to) {
			if code.has(addr) {
				*r, how = code, jumping
			}
		}
		jumps++
	}
	return how, jumps
}

// refine adds bits to in, the inference for the best bias, if calls that lead to the called frame
// are rarer in this file than their weights assume. It ends when its work reaches the parameter
// most. It returns its work.
func (e *election) refine(in *Inference, most int) (work int) {
	var voted []uint64
	for i, f := range e.frames {
		if work >= most {
			break
		}
		if i == 0 || !isReturn(f) || !e.has(f, e.best.bias) || e.isInterrupted(i, e.best.bias) {
			continue
		}
		addr := f.Addr - e.best.bias
		weight, how := e.link(f, e.frames[i-1], e.best.bias)
		if _, direct := e.image.File.CallTarget(e.image.callEnd(addr, f.Call)); how != calling || !direct || slices.Contains(voted, addr) {
			continue
		}
		voted = append(voted, addr)
		linked, tried := e.countLinks(f, e.frames[i-1])
		work += tried
		in.Bits += max(0, math.Log2(float64(tried+1)/float64(linked+1))-weight-e.callBits(i, e.best.bias))
	}
	return work
}

// countLinks moves the addresses of outer and inner together through the code, by multiples of 16
// bytes, the alignment of functions. tried is the number of positions. linked is the number of
// positions at which a direct call that ends at outer's address leads to inner's function.
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
