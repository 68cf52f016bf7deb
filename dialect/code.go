package dialect

import (
	"debug/elf"

	"github.com/symfilter/symfilter/internal/disasm"
	"github.com/symfilter/symfilter/internal/object"
)

// maxDisassembled is the number of bytes of a function that are disassembled for an address, a step each.
const maxDisassembled = 4 << 10

// isWithinInstruction reports whether addr is after the first byte of an instruction of x86-64, so that
// no fault can be there. It returns false if that is not known.
func (t *Trace) isWithinInstruction(f *object.File, addr uint64) bool {
	start, end, ok := f.UnwindRange(addr)
	if !ok || f.Machine != elf.EM_X86_64 || addr-start > maxDisassembled || t.quota().left() <= 0 {
		return false
	}
	t.quota().Spend(int(addr - start))
	code := f.Loaded(start)
	begins, known := disasm.Begins(code[:min(end-start, uint64(len(code)))], int(addr-start))
	return known && !begins
}
