package judge

import (
	"debug/elf"
	"math/bits"

	"github.com/symfilter/symfilter/internal/dialect"
)

const maxLinkBits = 12 // a function of 256 bytes in a megabyte

// link adds what the call before the address of outer shows about the file of inner, the frame that
// it has called: another file has the called function at the address of inner by chance only. The
// smaller the function and the larger the code of the file, the more that proves.
func (outer *check) link(t *Trace, inner *check) {
	if !outer.located() || !inner.located() || outer.returns == 0 || outer.of.image.File == nil || inner.of.image.File == nil || inner.stack != outer.stack {
		return
	}
	file, called := outer.of.image.File, inner.of.image
	if _, _, ok := file.UnwindRange(inner.lookup); ok && outer.of == inner.of && file.Machine == elf.EM_X86_64 {
		inner.beside, outer.beside = true, true
	}
	size := uint64(0)
	if target, ok := file.CallTarget(outer.returns); ok && outer.of == inner.of {
		start, end, ok := file.UnwindRange(target)
		if ok = ok && start == target; ok && inner.lookup-start < end-start {
			size = end - start
		} else if ok && t.leadsElsewhere(called, target, inner.lookup) {
			inner.astray, outer.astray = true, true
		}
	}
	if name, ok := file.CalledImport(outer.returns); size == 0 && ok {
		for _, s := range called.symbolsNamed(called.File, string(name)) {
			if inner.lookup-s.Addr < s.Size {
				size = s.Size
			}
		}
	}
	if size == 0 {
		return
	}
	inner.linked, outer.linked = true, true
	inner.here.Links++
	inner.weigh(min(max(bits.Len64(called.codeSize()/size)-1, 0), maxLinkBits))
}

// callEnd returns the end of the call before addr.
func (m *Image) callEnd(addr uint64, kind dialect.Call) uint64 {
	if kind == dialect.Adjusted {
		for _, less := range []uint64{1, 2, 4} { // all that machines with CallTarget and producers have
			if yes, known := m.File.CallEndsAt(addr + less); yes && known {
				return addr + less
			}
		}
	}
	return addr
}
