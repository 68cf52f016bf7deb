package judge

import (
	"debug/elf"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// Reasons why an address in a kernel is not located.
var (
	ErrNoOffset = errors.New("the log does not show where the kernel was loaded; a panic's \"Kernel Offset:\", an address with its function, the code around the instruction, or four return addresses would show the address")
	ErrNoReturn = errors.New("no call precedes this address: the stack has another value here, or another file ran")
	ErrOutKnown = errors.New("the kernel has no code at this address; if a module contains the address, the log does not show where the module was loaded")
)

// Kernels are moved by multiples of moveStep or moveStepAny. The other constants bound the search
// for the distance.
const (
	moveStep     = 2 << 20  // bytes; x86-64 and RISC-V
	moveStepAny  = 64 << 10 // bytes; other machines
	maxMoves     = 1024     // distances tried for an address
	maxMoveTries = 8        // addresses in a trace for which distances are tried
	// return addresses that must follow a call if nothing else shows the distance
	sureCalls = 4
)

// A moved holds what a trace shows about the load bias of a kernel.
type moved struct {
	bias    uint64
	known   bool
	several bool     // the trace shows several biases: the machine was booted again
	returns []uint64 // return addresses, until the bias is known
}

func (v *verdict) moveOf(f *Frame) *moved {
	k := v.loads[f.Load]
	if k == nil {
		if v.loads == nil || len(v.loads) >= maxLoads {
			v.loads = make(map[*dialect.KernelLoad]*moved)
		}
		k = new(moved)
		v.loads[f.Load] = k
	}
	return k
}

// findKernelBiases finds the load biases of kernels. It uses lines with an address and a function,
// the distance that a panic logs, code in the log, and calls before return addresses.
func (t *Trace) findKernelBiases(frames []*Frame, of []*verdict) {
	open := false
	for i, f := range frames {
		v := of[i]
		if f.Load == nil || v == nil || v.image.Err != nil {
			continue
		}
		k := v.moveOf(f)
		switch {
		case f.Kind == dialect.InSymbol:
			var s sized
			if object.Guard(func() { s = v.sizedSymbol(&f.Symbol) }) == nil && s.err == nil && !s.unsure {
				k.loadedAt(f.KernelAddr - (s.addr + f.Value))
			}
		case f.Load.Known:
			if f.Load.From == 0 || v.image.firstCode()-f.Load.From < moveStep {
				k.loadedAt(f.Load.Offset)
			}
		default:
			open = open || !k.known
			if f.Call == dialect.Return && !f.Unsure {
				addOnce(&k.returns, f.Value)
			}
		}
	}
	tried := make(map[*moved]int)
	for i, f := range frames {
		if !open || f.Load == nil || f.Kind != dialect.InKernel || of[i] == nil || of[i].image.Err != nil {
			continue
		}
		if k := of[i].moveOf(f); !k.known && tried[k] < maxMoveTries {
			tried[k]++
			t.tryMoves(of[i].image, k, f)
		}
	}
}

func (m *Image) firstCode() uint64 {
	first := uint64(1<<64 - 1)
	for _, s := range m.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			first = min(first, s.Addr)
		}
	}
	return first
}

// loadedAt records that a frame shows this load bias. It ignores a bias that is not a multiple of
// moveStepAny.
func (k *moved) loadedAt(bias uint64) {
	switch {
	case bias%moveStepAny != 0:
	case !k.known:
		k.bias, k.known, k.returns = bias, true, nil
	case k.bias != bias:
		k.several = true
	}
}

// tryMoves tries at most maxMoves biases that put f into the file's code. A bias fits if the file
// then has the code that the log lists. If the log lists no code, the method named fits decides.
// tryMoves accepts a bias only if it is the only one that fits.
func (t *Trace) tryMoves(m *Image, k *moved, f *Frame) {
	listed := f.Listed != nil && len(f.Listed.Units) > 0
	if !listed && len(k.returns) < sureCalls || t.worked > maxBiasWork || t.quota().Left() < 0 {
		return
	}
	var found []uint64
	work := 0
	m.visit(func(file *object.File) {
		step := uint64(moveStepAny)
		if file.Machine == elf.EM_X86_64 || file.Machine == elf.EM_RISCV {
			step = moveStep
		}
		tries := 0
		for _, s := range m.Segments {
			if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 {
				continue
			}
			for bias := (f.Value - s.Addr) &^ (step - 1); tries < maxMoves && f.Value-bias-s.Addr < s.MemSize; bias -= step {
				tries++
				work += len(k.returns) + 1
				if !file.ExecCovers(f.Value-bias) || slices.Contains(found, bias) {
					continue
				}
				if listed {
					if same, _ := compareCode(file, f.Listed, f.Value-bias); same {
						found = append(found, bias)
					}
				} else if k.fits(file, bias) {
					found = append(found, bias)
				}
			}
		}
	})
	t.worked += work
	t.quota().Spend(work)
	if len(found) == 1 {
		k.loadedAt(found[0])
	}
}

// fits reports whether the return addresses support this bias. Each one that is in the file's code
// must follow a call, and there must be at least sureCalls of them.
func (k *moved) fits(file *object.File, bias uint64) bool {
	calls := 0
	for _, addr := range k.returns {
		if !file.ExecCovers(addr - bias - 1) {
			continue
		}
		if yes, known := file.CallEndsAt(addr - bias); !yes || !known {
			return false
		}
		calls++
	}
	return calls >= sureCalls
}

// runAtAddress checks f, a frame with an address in a kernel.
func (c *check) runAtAddress(f *Frame) {
	k := c.of.moveOf(f)
	if !k.known || k.several {
		c.err = ErrNoOffset
		return
	}
	addr := f.Value - k.bias
	c.addr, c.lookup = addr, addr
	if f.Call == dialect.Return {
		c.lookup--
	}
	code, yes, known := false, false, false
	c.of.image.visit(func(file *object.File) {
		if code = file.ExecCovers(c.lookup); code && f.Call == dialect.Return {
			yes, known = file.CallEndsAt(addr)
		}
	})
	switch {
	case !code:
		c.err = ErrOutKnown
	case f.Call != dialect.Return:
		c.compareListed(f)
	case yes:
		addOnce(&c.of.all.Called, addr)
		addOnce(&c.here.Called, addr)
		c.verified = ByCall
	case known:
		if c.err = ErrNoReturn; !f.Unsure {
			c.fail()
		}
	}
}

// ofSeveral is called if several functions in the file have the name and size in f. It returns the
// one at f's address. Its err is ErrSizes if no function is at the address, or if the kernel's load
// bias is unknown.
func (v *verdict) ofSeveral(f *Frame) (found sized) {
	found.err = ErrSizes
	if f.Load == nil {
		return found
	}
	k := v.moveOf(f)
	if !k.known || k.several {
		return found
	}
	v.image.visit(func(file *object.File) {
		all := v.image.symbolsNamed(file, f.Symbol.Name)
		for i := range all {
			sym := &all[i]
			if fits, unsure := isOfSize(file, sym, f.Symbol.Size); fits && sym.Addr+f.Value == f.KernelAddr-k.bias {
				found = sized{addr: sym.Addr, size: sym.Size, unsure: unsure}
			}
		}
	})
	return found
}
