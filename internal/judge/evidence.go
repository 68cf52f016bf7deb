package judge

import "slices"

// The weights of what frames show about a file, in bits: a fact of n bits is true of one in 2^n files
// that did not run.
const (
	callBits       = 5  // a call before the address: at most one of 32 places in code, measured in libraries and small programs
	failureBits    = 6  // a failure among up to 64 frames multiplies the chances of another file by their number
	symbolBits     = 20 // a symbol at its distance; it outweighs a failure
	trampolineBits = 18 // its code is once or twice in a megabyte
	proofBits      = 14 // a file that did not run has them in one of 16,384 traces
)

// guessedCalls is the number of return addresses after a call that prove a file that was found by
// its name alone. No address may refute it.
const guessedCalls = 4

// unlinkedCalls is the number of return addresses after a call that a file needs for a frame that
// calls could link to its neighbours in the same file, and do not: see [check.link].
// unlinkedFaultCalls is that for a frame that no call precedes either, as the place of a fault.
const unlinkedCalls, unlinkedFaultCalls = 4, 6

// youngerCalls is the number of return addresses after a call, and youngerLinks that of frames to
// which such a call leads, that a stack needs in a file that was changed after the log was written.
const youngerCalls, youngerLinks = 4, 2

const maxEvidence = 64 // addresses of a kind that are counted for a module

// An Evidence counts what frames show about a file. Each address counts once.
type Evidence struct {
	Called       []uint64 `json:"called,omitempty"`       // addresses with a call before them
	Failed       []uint64 `json:"failed,omitempty"`       // return addresses without one, or addresses outside the code
	Stray        uint64   `json:"stray,omitempty"`        // address outside the code of a stack's last frame, which does not count
	Contradicted int      `json:"contradicted,omitempty"` // frames whose code is another in the file, of those in Failed
	Symbols      int      `json:"symbols,omitempty"`      // frames that agree with symbols or listed code
	Trampolines  int      `json:"trampolines,omitempty"`  // frames at the code to which a signal handler returns
	Links        int      `json:"links,omitempty"`        // frames that a call leads to, whose file is also that of the call
	Linked       int      `json:"linked,omitempty"`       // bits, of a frame in the function that it names, or that the next frame calls
}

// addOnce adds addr to a list of addresses.
func addOnce(list *[]uint64, addr uint64) {
	if len(*list) < maxEvidence && !slices.Contains(*list, addr) {
		*list = append(*list, addr)
	}
}

// bits returns the weight of the evidence for the file.
func (e *Evidence) bits() int {
	return callBits*len(e.Called) - failureBits*len(e.Failed) + symbolBits*min(e.Symbols, 1) + trampolineBits*min(e.Trampolines, 1) + e.Linked
}

// proves reports whether the file is the one that ran.
func (e *Evidence) proves(m *Image) bool {
	if m.Guessed {
		return e.Symbols > 0 || len(e.Called) >= guessedCalls
	}
	return e.bits() >= proofBits
}

// refutes reports whether the file is not the one that ran. For a file that the operator has named,
// one failure is not enough: frames may be wrong.
func (e *Evidence) refutes(m *Image) bool {
	switch {
	case len(e.Failed) == 0:
		return false
	case m.Guessed || m.ByName:
		return true
	}
	bits := e.bits()
	if e.Contradicted > 0 && !m.Given {
		bits -= callBits*len(e.Called) + e.Linked // the frames that agree may be in the parts that are as they were
	}
	return bits < proofBits && (!m.Given || len(e.Failed) > 1)
}

// placesInYounger reports whether the evidence of a stack is enough for its frames in a file that
// was changed after the log was written.
func (e *Evidence) placesInYounger() bool {
	return len(e.Called) >= youngerCalls && e.Links >= youngerLinks
}

// bounded returns a copy of e, which may come from a file, within its bounds.
func (e *Evidence) bounded() Evidence {
	return Evidence{
		Called: slices.Clone(e.Called[:min(len(e.Called), maxEvidence)]), Failed: slices.Clone(e.Failed[:min(len(e.Failed), maxEvidence)]),
		Stray: e.Stray, Contradicted: max(e.Contradicted, 0), Links: max(e.Links, 0), Symbols: max(e.Symbols, 0), Trampolines: max(e.Trampolines, 0), Linked: min(max(e.Linked, 0), maxLinkBits),
	}
}

// A StackState tells the stacks of a Trace apart.
type StackState struct {
	Stack   int    `json:"stack,omitempty"` // the number of the current stack
	Process uint64 `json:"process,omitempty"`
	Last    int    `json:"last,omitempty"` // Frame.Number of its last frame
	Down    bool   `json:"down,omitempty"` // the numbers of its frames fall
}

// next sets the stack of f, the next frame. Numbers rise within a stack, or they fall to 0.
func (s *StackState) next(f *Frame) {
	rises, falls := s.Last >= 0 && f.Number > s.Last, f.Number == s.Last-1 && (f.Number > 0 || s.Down)
	oneStack := rises || falls
	if f.Number < 0 {
		oneStack = s.Last <= 0 && !f.Apart // the first may have a number, as the place of a fault
	}
	if !oneStack || f.Process != s.Process {
		s.Stack++
		falls = false
	}
	s.Process, s.Last, s.Down = f.Process, f.Number, falls
}
