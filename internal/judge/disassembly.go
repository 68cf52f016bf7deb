package judge

import (
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/internal/disasm"
	"github.com/symfilter/symfilter/internal/object"
)

// maxDisassembled bounds the bytes of a function that are disassembled for an address. Each costs
// one step.
const maxDisassembled = 4 << 10

// isWithinInstruction reports whether addr is inside an instruction of x86-64, after its first
// byte, where no fault can occur. It returns false if this is unknown.
func (t *Trace) isWithinInstruction(f *object.File, addr uint64) bool {
	start, end, ok := f.UnwindRange(addr)
	if !ok || f.Machine != elf.EM_X86_64 || addr-start > maxDisassembled || t.quota().Left() <= 0 {
		return false
	}
	t.quota().Spend(int(addr - start))
	code := f.Loaded(start)
	begins, known := disasm.Begins(code[:min(end-start, uint64(len(code)))], int(addr-start))
	return known && !begins
}

// isWithinInstructions reports whether both addr and the address after it are inside an
// instruction.
func (t *Trace) isWithinInstructions(f *object.File, addr uint64) bool {
	return t.isWithinInstruction(f, addr) && t.isWithinInstruction(f, addr+1)
}

// maxJumps bounds the functions through which a called function may jump to another.
const maxJumps = 16

// leadsElsewhere reports whether a call of target cannot lead to addr. Then the function with addr
// is not at target, and no jumps lead from there to it. It returns false if this is unknown.
func (t *Trace) leadsElsewhere(m *Image, target, addr uint64) bool {
	from, to, ok := m.File.UnwindRange(addr)
	if !ok || m.File.Machine != elf.EM_X86_64 {
		return false
	}
	reached := []uint64{target}
	for i := 0; i < len(reached); i++ {
		if from <= reached[i] && reached[i] < to {
			return false
		}
		jumps := t.jumpsFrom(m, reached[i])
		if !jumps.known {
			return false
		}
		for _, next := range jumps.to {
			if !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
		if len(reached) > maxJumps {
			return false
		}
	}
	return true
}

// jumps are the addresses outside of a function to which it may jump.
type jumps struct {
	to    []uint64 // the beginnings of functions, if known, and entries of the procedure linkage table; at most maxJumps
	known bool     // to is complete
}

// jumpsFrom returns the jumps of the function at addr. It caches them, since a log repeats its
// frames and decoding a function takes 4 µs.
func (t *Trace) jumpsFrom(m *Image, addr uint64) (found jumps) {
	start, end, ok := m.File.UnwindRange(addr)
	if !ok || end-start > maxDisassembled || t.quota().Left() <= 0 {
		return found
	}
	key := about(m).number(start).sum()
	if found, ok = t.remembered().jumps.get(key, maxJumping); ok {
		return found
	}
	t.quota().Spend(int(end - start))
	code := m.File.Loaded(start)
	beyond, all := disasm.Jumps(code[:min(end-start, uint64(len(code)))])
	for _, at := range beyond {
		to := start + uint64(at)
		if function, _, ok := m.File.UnwindRange(to); ok && !m.File.IsStub(to) {
			to = function
		}
		if !slices.Contains(found.to, to) {
			if found.to = append(found.to, to); len(found.to) > maxJumps {
				found.to, all = nil, false
				break
			}
		}
	}
	found.known = all
	t.remembered().jumps.put(key, found, maxJumping)
	return found
}
