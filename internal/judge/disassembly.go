package judge

import (
	"debug/elf"
	"slices"

	"github.com/symfilter/symfilter/internal/disasm"
	"github.com/symfilter/symfilter/internal/object"
)

// maxDisassembled bounds the bytes of a function that are disassembled for an address. Each byte
// costs one step of the Quota.
const maxDisassembled = 4 << 10

// isWithinInstruction reports whether addr is inside an x86-64 instruction, after its first byte:
// no fault occurs there. It returns false if the instructions are unknown.
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

func (t *Trace) isWithinInstructions(f *object.File, addr uint64) bool {
	return t.isWithinInstruction(f, addr) && t.isWithinInstruction(f, addr+1)
}

// jumpMachines lists the machines whose jumps can be decoded. On Arm, only jumps in Thumb code can
// be decoded.
var jumpMachines = [...]struct {
	machine elf.Machine
	code    disasm.Machine
}{{elf.EM_X86_64, disasm.X86}, {elf.EM_AARCH64, disasm.Arm64}, {elf.EM_RISCV, disasm.RISCV}, {elf.EM_ARM, disasm.Thumb}}

// codeCalled returns the kind of machine code to which a call leads. end is the address after the
// call. ok is false if the jumps in such code cannot be read.
func (m *Image) codeCalled(end uint64) (machine disasm.Machine, ok bool) {
	for _, j := range jumpMachines {
		if m.File.Machine == j.machine {
			return j.code, j.code != disasm.Thumb || m.File.CallsThumb(end)
		}
	}
	return 0, false
}

// maxJumps bounds the functions that a called function may reach by jumps.
const maxJumps = 16

// A lead is where a call leads, compared with the expected function.
type lead int

const (
	// the call is not direct; or the called function is unknown, cannot be read within the limits,
	// or jumps through a table, perhaps to its cold part
	anywhere  lead = iota
	unclear        // the called function may jump anywhere
	here           // to the expected function, perhaps by jumps
	elsewhere      // not to the expected function
)

// leadOf returns where a call in m leads, if jumps are followed. end is the address after the call.
// The expected function is the one that contains addr. A call of an imported function that m does
// not define leads elsewhere.
func (t *Trace) leadOf(m *Image, end, addr uint64) lead {
	from, to, ok := m.File.UnwindRange(addr)
	target, direct := m.File.CallTarget(end)
	if !ok || !direct {
		return anywhere
	}
	if name, ok := m.File.StubImport(target); ok && len(m.namedRanges(string(name))) == 0 {
		return elsewhere
	} else if m.File.IsStub(target) {
		return anywhere
	}
	machine, readable := m.codeCalled(end)
	start, _, ok := m.File.UnwindRange(target)
	if !ok || !readable || start != target && start == from {
		return anywhere // on Arm, one range may have several functions
	}
	reached, tables := []uint64{target}, false
	for i := 0; i < len(reached); i++ {
		if from <= reached[i] && reached[i] < to {
			return here
		}
		if name, ok := m.File.StubImport(reached[i]); ok && len(m.namedRanges(string(name))) == 0 {
			continue // the jump leaves the file
		}
		jumps := t.jumpsFrom(m, machine, reached[i])
		switch {
		case jumps.computed && machine != disasm.Thumb: // in Thumb code, data may look like a jump
			return unclear
		case !jumps.known:
			return anywhere
		}
		tables = tables || jumps.tables
		for _, next := range jumps.to {
			if !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
		if len(reached) > maxJumps {
			return anywhere
		}
	}
	if tables {
		return anywhere
	}
	return elsewhere
}

// jumps are the addresses outside of a function to which the function may jump.
type jumps struct {
	// the beginnings of functions, if known, and entries of the procedure linkage table; at most
	// maxJumps in all
	to       []uint64
	known    bool // to is complete, but for the tables
	computed bool // to is unknown: a jump is computed, or an instruction is unknown
	tables   bool // the function also jumps through tables
}

// jumpsFrom returns the jumps of the function at addr. It caches them: a log repeats its frames,
// and decoding a function takes 4 µs.
func (t *Trace) jumpsFrom(m *Image, machine disasm.Machine, addr uint64) (found jumps) {
	start, end, ok := m.File.UnwindRange(addr)
	if !ok || end-start > maxDisassembled {
		return found
	}
	key := about(m).number(uint64(machine)).number(start).sum()
	if found, ok = t.remembered().jumps.get(key, maxJumping); ok {
		return found
	}
	if t.quota().Left() <= 0 {
		return jumps{}
	}
	t.quota().Spend(int(end - start))
	code := m.File.Loaded(start)
	beyond, tables, all := disasm.Jumps(machine, code[:min(end-start, uint64(len(code)))])
	found = jumps{known: all, computed: !all, tables: tables}
	for _, at := range beyond {
		to := start + uint64(at)
		if function, _, ok := m.File.UnwindRange(to); ok && !m.File.IsStub(to) {
			to = function
		}
		if !slices.Contains(found.to, to) {
			if found.to = append(found.to, to); len(found.to) > maxJumps {
				found.to, found.known = nil, false
				break
			}
		}
	}
	t.remembered().jumps.put(key, found, maxJumping)
	return found
}
