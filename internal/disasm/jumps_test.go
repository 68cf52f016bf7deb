package disasm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Jumps must return the targets outside of the code, also of conditional jumps, but not of calls.
// The first byte after the code is outside. Code with a computed jump or an unknown instruction may
// jump anywhere, so Jumps must return no targets. llvm-mc has assembled the bytes.
func TestJumps(t *testing.T) {
	for _, tt := range []struct {
		machine    Machine
		name, code string
		want       []int
		all        bool
	}{
		{X86, "none", "f3 0f 1e fa e8 00 01 00 00 eb f9 75 01 90 c3", nil, true},
		{X86, "jumps", "0f 84 fa 00 00 00 75 f0 eb 03 c3 e9 00 00 00 00", []int{0x100, -8, 16}, true},
		{X86, "a computed jump", "e9 00 01 00 00 ff e0", nil, false},
		{X86, "table: add rax, rdx; jmp *rax, notrack jmp *rax", "48 01 d0 ff e0 48 01 d0 3e ff e0", nil, true},
		{X86, "add rax, rdx; jmp *rdx", "48 01 d0 ff e2", nil, false},
		{X86, "an unknown instruction", "e9 00 01 00 00 06", nil, false},
		{X86, "cut off", "e9 00 01", nil, false},
		{Arm64, "bl, blr, b.eq 4, ret", "10000094 20003fd6 20000054 c0035fd6", nil, true},
		{Arm64, "b 256; b -8", "40000014 feffff17", []int{256, -4}, true},
		{Arm64, "b.eq 16; cbz -32768; cbnz 8", "80000054 0100fcb4 43000035", []int{16, -32764, 16}, true},
		{Arm64, "tbz -4; tbnz 32764", "e2ff0fb6 e1ff1337", []int{-4, 32768}, true},
		{Arm64, "br x3", "40000014 60001fd6", nil, false},
		{Arm64, "braa x3, x4", "64081fd7", nil, false},
		{Arm64, "table: add x3, x4, w3, sxtw 2; br x3", "83c8238b 60001fd6", nil, true},
		{Arm64, "add x4, x4, w3, sxtw 2; br x3", "84c8238b 60001fd6", nil, false},
		{Arm64, "cut off", "40000014 6000", nil, false},
		{RISCV, "jal 16; jal t0, 32; c.jalr; ret", "ef000001 ef020002 8297 67800000", nil, true},
		{RISCV, "c.jr ra; jr t0", "8280 67800200", nil, true},
		{RISCV, "j 256; beq -4096; bgeu 4094", "6f000010 6300b580 e37fb57e", []int{256, -4092, 4102}, true},
		{RISCV, "c.j -2048, 2046; c.beqz -256; c.bnez 254", "01b0 fdaf 01d1 fded", []int{-2048, 2048, -252, 260}, true},
		{RISCV, "auipc t1, 1; jr -16(t1)", "17130000 670003ff", []int{4096 - 16}, true},
		{RISCV, "table: c.add a5, a4; c.jr a5", "ba97 8287", nil, true},
		{RISCV, "table: add a5, a4, a5; c.jr a5", "b307f700 8287", nil, true},
		{RISCV, "c.mv a5, a4; c.jr a5", "ba87 8287", nil, false},
		{RISCV, "c.jalr a5; c.jr a5", "8297 8287", nil, false},
		{RISCV, "jr 8(t1)", "67008300", nil, false},
		{RISCV, "c.jr a5", "8287", nil, false},
		{Thumb, "push, bl, blx, udf, svc, bx lr", "10b5 00f040f8 9847 01de 00df 7047", nil, true},
		{Thumb, "mov pc, lr; ldr pc, [sp], 4; pop pc", "f746 5df804fb 10bd", nil, true},
		{Thumb, "b -2048, 2046", "00e4 ffe3", []int{-2044, 2052}, true},
		{Thumb, "beq -256; bne 254; cbz 126; cbnz 0", "80d0 7fd1 f8b3 01b9", []int{-252, 260, 134, 10}, true},
		{Thumb, "b.w -16777216, 16777214", "00f40090 fff3ff97", []int{-16777212, 16777222}, true},
		{Thumb, "beq.w -1048576; bne.w 1048574", "00f40080 7ff0ffaf", []int{-1048572, 1048582}, true},
		{Thumb, "bx r3", "1847", nil, false},
		{Thumb, "mov pc, r2", "9746", nil, false},
		{Thumb, "table: add pc, r3; tbb [pc, r0]", "9f44 dfe800f0", nil, true},
		{Thumb, "table: add r2, r3; bx r2", "1a44 1047", nil, true},
		{Thumb, "add r2, r3; bx r3", "1a44 1847", nil, false},
		{Thumb, "ldr pc, [r1, r2]", "51f802f0", nil, false},
		{Thumb, "ldr pc, [pc, 8]", "dff808f0", nil, false},
	} {
		got, tables, all := Jumps(tt.machine, bytesOf(t, tt.code))
		if diff := cmp.Diff(tt.want, got); diff != "" || all != tt.all || tables != (all && strings.Contains(tt.name, "table")) {
			t.Errorf("machine %d, %s: tables %t, all %t, want %t (-want +got)\n%s", tt.machine, tt.name, tables, all, tt.all, diff)
		}
	}
}

// Jumps must not read beyond the code, and each instruction must have a size.
func FuzzJumps(f *testing.F) {
	f.Add([]byte("\x40\x00\x00\x14\x60\x00"), uint8(1))
	f.Add([]byte("\x17\x13\x00\x00\x67\x00\x03\xff"), uint8(2))
	f.Add([]byte("\x00\xf4\x00\x90\xff"), uint8(3))
	f.Fuzz(func(t *testing.T, code []byte, machine uint8) {
		if len(code) > 512 || machine > uint8(Thumb) {
			return
		}
		if beyond, _, _ := Jumps(Machine(machine), code); len(beyond) > len(code) {
			t.Errorf("%d jumps", len(beyond))
		}
	})
}
