// Package disasm disassembles the code that Linux prints around a failed instruction of x86-64 or
// AArch64. It also finds jump targets on x86-64, AArch64, RISC-V and Arm, and where instructions of
// x86-64 begin.
package disasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// A Machine is an instruction set.
type Machine uint8

const (
	X86   Machine = iota // x86-64
	Arm64                // AArch64, little-endian
	RISCV                // RISC-V; like Thumb, only for Jumps
	Thumb                // Thumb, little-endian
)

const maxX86 = 15 // bytes of an instruction

// Lines returns a line for each instruction of code, in the form of the kernel's
// scripts/decodecode. It marks the failed instruction, at the given offset:
//
//	2a:* 48 89 50 10             mov %rdx,0x10(%rax)  <-- trapping instruction
//
// On x86 the code may begin within an instruction. Lines then skips its first bytes, to make an
// instruction begin at the given offset. Lines panics if that offset is outside of code.
func Lines(machine Machine, code []byte, at int) (lines []string) {
	from, decode := 0, arm64Text
	if machine == X86 {
		from, decode = x86Start(code, at), x86Text
	}
	for from < len(code) {
		text, size := decode(code[from:], uint64(from))
		mark, note := " ", ""
		if from == at {
			mark, note = "*", "  <-- trapping instruction"
		}
		lines = append(lines, fmt.Sprintf("%4x:%s %-23s %s%s", from, mark, shownBytes(machine, code[from:from+size]), text, note))
		from += size
	}
	return lines
}

// x86Start returns the lowest offset below 15 from which consecutive instructions lead to the given
// offset. If there is none, it returns the given offset.
func x86Start(code []byte, at int) int {
	for start := range min(at, maxX86) {
		for end := start; end <= at; {
			if end == at {
				return start
			}
			inst, err := x86asm.Decode(code[end:], 64)
			if err != nil || inst.Op == 0 { // 0: a prefix without an instruction
				break
			}
			end += inst.Len
		}
	}
	return at
}

// Begins reports whether an instruction of x86-64 begins at the given offset of code, if one begins
// at offset 0. known is false if an earlier instruction cannot be decoded.
func Begins(code []byte, at int) (begins, known bool) {
	from := 0
	for from < at && from < len(code) {
		_, size := x86Inst(code[from:])
		if size == 0 {
			return false, false
		}
		from += size
	}
	return from == at, true
}

// x86Inst decodes the first instruction of code. size is in bytes; 0 if the instruction is unknown.
func x86Inst(code []byte) (inst x86asm.Inst, size int) {
	if bytes.HasPrefix(code, endbr64) {
		return inst, len(endbr64)
	}
	inst, err := x86asm.Decode(code, 64)
	if err != nil || inst.Op == 0 { // 0: a prefix without an instruction
		return inst, 0
	}
	return inst, inst.Len
}

// endbr64 begins functions for Intel's CET. x86asm cannot decode it.
var endbr64 = []byte("\xf3\x0f\x1e\xfa")

// x86Text returns the text of the first instruction of code, and its size in bytes. An unknown
// instruction has one byte. If fewer than 15 bytes are left, an unknown instruction has all of
// them: the listing may have cut it off.
func x86Text(code []byte, at uint64) (text string, size int) {
	inst, err := x86asm.Decode(code, 64)
	switch known := err == nil && inst.Op != 0 && inst.Len <= len(code); {
	case !known && len(code) < maxX86:
		return "(cut off)", len(code)
	case !known:
		return "(bad)", 1
	}
	return x86asm.GNUSyntax(inst, at, nil), inst.Len
}

// arm64Text is x86Text for AArch64, whose instructions have four bytes.
func arm64Text(code []byte, _ uint64) (text string, size int) {
	if len(code) < 4 {
		return "(bad)", len(code)
	}
	inst, err := arm64asm.Decode(code)
	if err != nil {
		return "(bad)", 4
	}
	return arm64asm.GNUSyntax(inst), 4
}

// shownBytes returns the bytes of an instruction as the kernel lists them.
func shownBytes(machine Machine, b []byte) string {
	if machine == Arm64 && len(b) == 4 {
		return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(b))
	}
	return strings.TrimSpace(fmt.Sprintf("% x", b))
}
