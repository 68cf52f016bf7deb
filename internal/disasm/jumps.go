package disasm

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

// A flow describes where execution continues after an instruction. The zero value means that it
// continues at the next instruction, perhaps after a call, or returns.
type flow struct {
	jumps    bool // it may jump
	to       int  // distance in bytes from the instruction to the jump's target
	anywhere bool // the target is computed
	table    bool // the target is in a table
}

// Jumps returns the offsets outside of code to which code may jump. If Jumps cannot find all of
// them, all is false and beyond is nil. The reason is a jump to a computed address, an instruction
// that is cut off, or on x86-64 an unknown instruction. tables is set if code jumps through the
// table of a switch statement. The targets in the table are in the same function, but perhaps not
// in code. Data between instructions is decoded as instructions.
func Jumps(machine Machine, code []byte) (beyond []int, tables, all bool) {
	var x86 x86asm.Inst // the previous instruction
	before := uint32(0) // the previous instruction on other machines
	for at := 0; at < len(code); {
		var f flow
		size := 0
		if machine == X86 {
			f, x86, size = x86Flow(code[at:], x86)
		} else {
			var next [4]byte
			copy(next[:], code[at:])
			w := binary.LittleEndian.Uint32(next[:])
			f, size = flowOf(machine, w, before)
			before = w
		}
		to := at + f.to
		if size == 0 || size > len(code)-at || f.anywhere {
			return nil, false, false
		}
		tables = tables || f.table
		if at += size; f.jumps && (to < 0 || to >= len(code)) {
			beyond = append(beyond, to)
		}
	}
	return beyond, tables, true
}

// Entries of a table are relative to the table's address: an addition precedes the jump. A tail
// call through a pointer has no addition.

// computed returns the flow of a jump to a computed address. table is set if the address is from a
// table.
func computed(table bool) flow { return flow{anywhere: !table, table: table} }

// x86Flow decodes the first instruction of code. before is the previous instruction.
func x86Flow(code []byte, before x86asm.Inst) (f flow, inst x86asm.Inst, size int) {
	inst, size = x86Inst(code)
	if size == 0 || size == len(endbr64) && inst.Op == 0 || inst.Op == x86asm.CALL {
		return f, inst, size
	}
	to, relative := inst.Args[0].(x86asm.Rel)
	if inst.Op == x86asm.JMP && !relative {
		return computed(before.Op == x86asm.ADD && before.Args[0] == inst.Args[0]), inst, size
	}
	return flow{jumps: relative, to: size + int(to)}, inst, size
}

// flowOf decodes w, the next four bytes of code for machines other than x86-64. before is the
// previous instruction. size is in bytes.
func flowOf(machine Machine, w, before uint32) (f flow, size int) {
	switch machine {
	case Arm64:
		return arm64Flow(w, before), 4
	case RISCV:
		if w&3 == 3 {
			return riscvFlow(w, before), 4
		}
		return compressedFlow(w&0xffff, before), 2
	case Thumb:
		if w&0xf800 >= 0xe800 {
			return wideThumbFlow(w&0xffff, w>>16), 4
		}
		return thumbFlow(w&0xffff, before&0xffff), 2
	}
	return flow{}, 0
}

func signed(w uint32, bits int) int { return int(int32(w<<(32-bits)) >> (32 - bits)) }

// field extracts n bits of w, beginning with bit number from. In the result, they begin with bit
// number to.
func field(w uint32, from, n, to int) uint32 { return w >> from & (1<<n - 1) << to }

func arm64Flow(w, before uint32) flow {
	switch {
	case w&0xfc000000 == 0x14000000: // b
		return flow{jumps: true, to: signed(w, 26) * 4}
	case w&0xff000000 == 0x54000000, w&0x7e000000 == 0x34000000: // b.cond, cbz
		return flow{jumps: true, to: signed(w>>5, 19) * 4}
	case w&0x7e000000 == 0x36000000: // tbz
		return flow{jumps: true, to: signed(w>>5, 14) * 4}
	}
	if w&0xfefff000 == 0xd61f0000 { // br, with and without authentication
		return computed(before&0xff000000 == 0x8b000000 && before&31 == w>>5&31) // add
	}
	return flow{}
}

// RISC-V registers for return addresses: of calls, and of calls to routines that save registers.
const raRegister, t0Register = 1, 5

func riscvFlow(w, before uint32) flow {
	register := field(w, 15, 5, 0)
	switch {
	case w&0xfff == 0x6f: // j
		to := field(w, 31, 1, 20) | field(w, 12, 8, 12) | field(w, 20, 1, 11) | field(w, 21, 10, 1)
		return flow{jumps: true, to: signed(to, 21)}
	case w&0x7f == 0x63: // beq and others
		to := field(w, 31, 1, 12) | field(w, 7, 1, 11) | field(w, 25, 6, 5) | field(w, 8, 4, 1)
		return flow{jumps: true, to: signed(to, 13)}
	case w&0x7fff != 0x67 || register == raRegister || register == t0Register: // not jr
		return flow{}
	case before&0x7f == 0x17 && field(before, 7, 5, 0) == register: // auipc
		return flow{jumps: true, to: int(int32(before&^0xfff)) + signed(w>>20, 12) - 4}
	}
	return computed(addsTo(before, register))
}

func addsTo(w, register uint32) bool {
	compressed := w&0xf003 == 0x9002 && field(w, 2, 5, 0) != 0
	return field(w, 7, 5, 0) == register && (compressed || w&0xfe00707f == 0x33)
}

// compressedFlow is riscvFlow for an instruction of two bytes.
func compressedFlow(h, before uint32) flow {
	register := field(h, 7, 5, 0)
	switch {
	case h&0xe003 == 0xa001: // c.j
		to := field(h, 12, 1, 11) | field(h, 8, 1, 10) | field(h, 9, 2, 8) | field(h, 6, 1, 7) | field(h, 7, 1, 6) | field(h, 2, 1, 5) | field(h, 11, 1, 4) | field(h, 3, 3, 1)
		return flow{jumps: true, to: signed(to, 12)}
	case h&0xc003 == 0xc001: // c.beqz, c.bnez
		to := field(h, 12, 1, 8) | field(h, 5, 2, 6) | field(h, 2, 1, 5) | field(h, 10, 2, 3) | field(h, 3, 2, 1)
		return flow{jumps: true, to: signed(to, 9)}
	}
	if h&0xf07f == 0x8002 && register != raRegister && register != t0Register { // c.jr
		return computed(addsTo(before, register))
	}
	return flow{}
}

const spRegister, lrRegister, pcRegister = 13, 14, 15

// thumbFlow decodes an instruction of two bytes. An addition to the program counter jumps through a
// table.
func thumbFlow(h, before uint32) flow {
	const ahead = 4 // distances are relative to the instruction's address plus this number of bytes
	switch {
	case h&0xf000 == 0xd000 && h&0x0e00 != 0x0e00: // b with a condition
		return flow{jumps: true, to: ahead + signed(h, 8)*2}
	case h&0xf800 == 0xe000: // b
		return flow{jumps: true, to: ahead + signed(h, 11)*2}
	case h&0xf500 == 0xb100: // cbz, cbnz
		return flow{jumps: true, to: ahead + int(field(h, 9, 1, 6)|field(h, 3, 5, 1))}
	case h&0xff87 == 0x4700, h&0xff87 == 0x4687: // bx, mov pc
		register := field(h, 3, 4, 0)
		if register == lrRegister {
			return flow{}
		}
		added := before&7 | field(before, 7, 1, 3)
		return computed(before&0xff00 == 0x4400 && added == register) // add
	}
	return flow{table: h&0xff87 == 0x4487} // add pc
}

// wideThumbFlow is thumbFlow for an instruction of four bytes.
func wideThumbFlow(first, second uint32) flow {
	const ahead = 4
	sign := field(first, 10, 1, 0)
	j1, j2 := field(second, 13, 1, 0), field(second, 11, 1, 0)
	switch {
	case first&0xf800 == 0xf000 && second&0xd000 == 0x9000: // b.w
		to := sign<<24 | (^(j1^sign)&1)<<23 | (^(j2^sign)&1)<<22 | field(first, 0, 10, 12) | field(second, 0, 11, 1)
		return flow{jumps: true, to: ahead + signed(to, 25)}
	case first&0xf800 == 0xf000 && second&0xd000 == 0x8000 && first&0x0380 != 0x0380: // b<cond>.w
		to := sign<<20 | j2<<19 | j1<<18 | field(first, 0, 6, 12) | field(second, 0, 11, 1)
		return flow{jumps: true, to: ahead + signed(to, 21)}
	case first&0xfff0 == 0xe8d0 && second&0xffe0 == 0xf000: // tbb, tbh
		return flow{table: true}
	}
	loadsPC := first&0xff70 == 0xf850 && second>>12 == pcRegister // ldr pc
	return flow{anywhere: loadsPC && field(first, 0, 4, 0) != spRegister}
}
