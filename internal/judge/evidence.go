package judge

import "slices"

// Weights of facts for or against a file, in bits. A fact of n bits is also true for one in 2^n
// files that did not run.
const (
	// a call before the address: true for at most one of 32 addresses in code, as measured in
	// libraries and small programs
	callBits       = 5
	failureBits    = 6  // subtracted for a failure, which may be at any of 64 frames
	symbolBits     = 20 // a symbol at the logged distance; it outweighs a failure
	trampolineBits = 18 // a signal trampoline; its code occurs once or twice in a megabyte
	proofBits      = 14 // for a proof; a file that did not run has these in one of 16,384 traces
)

// guessedCalls is the number of return addresses that must follow a call to prove a file that was
// found only by its name. Any contradicting address refutes such a file.
const guessedCalls = 4

// A call should link a frame to its neighbour in the same file: see [check.link]. For a frame
// without such a call, unlinkedCalls return addresses must follow a call. If the frame's own
// address does not follow a call, as at a fault, unlinkedFaultCalls return addresses must.
const unlinkedCalls, unlinkedFaultCalls = 4, 6

// For a stack in a file that was changed after the log was written, youngerCalls return addresses
// must follow a call. Calls must also lead to the functions of youngerLinks frames.
const youngerCalls, youngerLinks = 4, 2

const maxEvidence = 64 // addresses counted for a module, of each kind

// An Evidence counts facts for and against a file. Called and Failed have each address once.
type Evidence struct {
	Called []uint64 `json:"called,omitempty"` // addresses with a call before them
	// return addresses without a call before them, and addresses outside the code
	Failed []uint64 `json:"failed,omitempty"`
	// first address outside the code in the last frame of a stack, which is not in Failed
	Stray uint64 `json:"stray,omitempty"`
	// number of Failed frames at which the file has different code
	Contradicted int `json:"contradicted,omitempty"`
	Symbols      int `json:"symbols,omitempty"` // frames that agree with symbols or listed code
	// frames in a signal trampoline, the code to which a signal handler returns
	Trampolines int `json:"trampolines,omitempty"`
	// frames whose function is the target of the next frame's call
	Links int `json:"links,omitempty"`
	// highest weight, in bits, of the fact that a frame is in the function that the log names, or
	// that its caller calls
	Linked int `json:"linked,omitempty"`
}

// addOnce adds addr to a list, unless the list has it or is full.
func addOnce(list *[]uint64, addr uint64) {
	if len(*list) < maxEvidence && !slices.Contains(*list, addr) {
		*list = append(*list, addr)
	}
}

// bits returns the weight of the evidence for the file.
func (e *Evidence) bits() int {
	return callBits*len(e.Called) - failureBits*len(e.Failed) + symbolBits*min(e.Symbols, 1) + trampolineBits*min(e.Trampolines, 1) + e.Linked
}

// proves reports whether the evidence proves that the file ran.
func (e *Evidence) proves(m *Image) bool {
	if m.Guessed {
		return e.Symbols > 0 || len(e.Called) >= guessedCalls
	}
	return e.bits() >= proofBits
}

// refutes reports whether the evidence shows that the file did not run: it has a failure, and
// weighs less than proofBits. For a file found only by its name, one failure is enough. An
// operator's file needs two failures, since frames may be wrong.
func (e *Evidence) refutes(m *Image) bool {
	switch {
	case len(e.Failed) == 0:
		return false
	case m.Guessed || m.ByName:
		return true
	}
	bits := e.bits()
	if e.Contradicted > 0 && !m.Given {
		// another build may have the same code at the agreeing frames: they prove nothing
		bits -= callBits*len(e.Called) + e.Linked
	}
	return bits < proofBits && (!m.Given || len(e.Failed) > 1)
}

// doubts reports whether a stack contradicts a file that its process has mapped. One failure among
// enough agreeing frames does not raise doubt: the frame may be garbage, or the location of a
// fault.
func (e *Evidence) doubts() bool { return len(e.Failed) > 0 && e.bits() < proofBits }

// placesInYounger reports whether a stack has enough evidence for a file that was changed after the
// log was written.
func (e *Evidence) placesInYounger() bool {
	return len(e.Called) >= youngerCalls && e.Links >= youngerLinks
}

// bounded returns a copy of e with its lists and numbers within their bounds: a checkpoint may have
// any values.
func (e *Evidence) bounded() Evidence {
	return Evidence{
		Called: slices.Clone(e.Called[:min(len(e.Called), maxEvidence)]), Failed: slices.Clone(e.Failed[:min(len(e.Failed), maxEvidence)]),
		Stray: e.Stray, Contradicted: max(e.Contradicted, 0), Links: max(e.Links, 0), Symbols: max(e.Symbols, 0), Trampolines: max(e.Trampolines, 0), Linked: min(max(e.Linked, 0), maxLinkBits),
	}
}

// A StackState separates the stacks of a Trace.
type StackState struct {
	Stack   int    `json:"stack,omitempty"` // number of the current stack
	Process uint64 `json:"process,omitempty"`
	Last    int    `json:"last,omitempty"` // Frame.Number of the stack's last frame
	Down    bool   `json:"down,omitempty"` // the frame numbers of the stack decrease
}

// next sets the stack of f, the next frame. Numbers increase within a stack, or decrease to 0.
func (s *StackState) next(f *Frame) {
	rises, falls := s.Last >= 0 && f.Number > s.Last, f.Number == s.Last-1 && (f.Number > 0 || s.Down)
	oneStack := rises || falls
	if f.Number < 0 {
		// only the first frame of an unnumbered stack may have a number: 0, at the location of a
		// fault
		oneStack = s.Last <= 0 && !f.Apart
	}
	if !oneStack || f.Process != s.Process {
		s.Stack++
		falls = false
	}
	s.Process, s.Last, s.Down = f.Process, f.Number, falls
}
