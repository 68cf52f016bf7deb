package judge

import (
	"debug/elf"
	"math/bits"

	"github.com/symfilter/symfilter/internal/dialect"
)

const maxLinkBits = 12 // maximum weight of a call, for a function of 256 bytes in a megabyte

// link examines the call that ends at outer's return address. inner is the check of the called
// frame. If the call leads to the function that contains inner's address, both checks become
// linked, and the fact counts as evidence for inner's file. Its weight is higher for a small
// function or a large file, in which a coincidence is rarer. Otherwise, link may set astray or
// unclear in both checks. It also sets beside.
func (outer *check) link(t *Trace, inner *check) {
	if !outer.located() || !inner.located() || outer.returns == 0 || outer.of.image.File == nil || inner.of.image.File == nil || inner.stack != outer.stack {
		return
	}
	file, called := outer.of.image.File, inner.of.image
	if _, _, ok := file.UnwindRange(inner.lookup); ok && outer.of == inner.of && file.Machine == elf.EM_X86_64 {
		inner.beside, outer.beside = true, true
	}
	size := outer.of.image.calledSize(outer.returns, called, inner.lookup)
	if size == 0 {
		// If the file's base is inferred, any call can contradict the frames. If not, only a call
		// that cannot leave an x86-64 file can: an imported function may jump back into this file.
		// On other machines, leaf functions often have no frame record, so an unwinder that follows
		// frame pointers leaves out their callers.
		if outer.of != inner.of || !outer.of.inferred && (file.Machine != elf.EM_X86_64 || file.CallMayLeave(outer.returns)) {
			return
		}
		switch t.leadOf(called, outer.returns, inner.lookup) {
		case elsewhere:
			inner.astray, outer.astray = true, true
		case unclear:
			inner.unclear, outer.unclear = true, true
		}
		return
	}
	inner.linked, outer.linked = true, true
	inner.here.Links++
	inner.weigh(min(max(bits.Len64(called.codeSize()/size)-1, 0), maxLinkBits))
}

// calledSize returns the size of the function at addr in the called file, if the call in m leads to
// the beginning of this function. Otherwise it returns 0. end is the address after the call.
func (m *Image) calledSize(end uint64, called *Image, addr uint64) (size uint64) {
	for _, r := range m.calledRanges(end, called) {
		if r.has(addr) {
			size = r.end - r.start
		}
	}
	return size
}

type codeRange struct{ start, end uint64 }

func (r codeRange) has(addr uint64) bool { return addr >= r.start && addr < r.end }

// calledRanges returns the functions of the called file to which a call in m may lead. These are
// the target of a direct call, or the functions with the name of an import. end is the address
// after the call.
func (m *Image) calledRanges(end uint64, called *Image) []codeRange {
	if target, ok := m.File.CallTarget(end); ok && m.File == called.File {
		if from, to, ok := m.File.UnwindRange(target); ok && from == target {
			return []codeRange{{from, to}}
		}
	}
	if name, ok := m.File.CalledImport(end); ok {
		return called.namedRanges(string(name))
	}
	return nil
}

func (m *Image) namedRanges(name string) (all []codeRange) {
	for _, s := range m.symbolsNamed(m.File, name) {
		all = append(all, codeRange{s.Addr, s.Addr + s.Size})
	}
	return all
}

// codeAt returns the function at addr. For an entry of the procedure linkage table, it returns the
// file's functions with the name of the import.
func (m *Image) codeAt(addr uint64) []codeRange {
	if name, ok := m.File.StubImport(addr); ok {
		return m.namedRanges(string(name))
	}
	if from, to, ok := m.File.UnwindRange(addr); ok {
		return []codeRange{{from, to}}
	}
	return nil
}

// callEnd returns the address after the call to which addr belongs. This is addr itself, or a
// higher address if the program that printed addr has subtracted from the return address.
func (m *Image) callEnd(addr uint64, kind dialect.Call) uint64 {
	if kind == dialect.Adjusted {
		// on machines with CallTarget, programs subtract only these distances from return addresses
		for _, less := range []uint64{1, 2, 4} {
			if yes, known := m.File.CallEndsAt(addr + less); yes && known {
				return addr + less
			}
		}
	}
	return addr
}
